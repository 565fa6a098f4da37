"""What the template makes keeps to the rules for chapters, and runs."""

import execute_notebooks
import nbformat
import new_chapter
import pytest
import test_notebooks as rules


@pytest.fixture
def begun(tmp_path):
    assert new_chapter.main(["25_it_runs", "Does it run?", "--folder", str(tmp_path)]) == 0
    return tmp_path / "25_it_runs.ipynb"


def test_a_new_chapter_runs_and_keeps_the_rules(begun):
    assert execute_notebooks.execute(begun, timeout=120)
    for rule in (
        rules.test_name_and_title,
        rules.test_first_code_cell_installs_the_package_in_colab,
        rules.test_every_cell_was_executed_in_order,
        rules.test_no_stored_errors_or_warnings,
        rules.test_cells_are_short,
        rules.test_pictures_have_name_caption_and_description,
        rules.test_cell_ids_are_readable_and_unique,
        rules.test_metadata_is_what_the_executor_leaves,
    ):
        rule(begun)
    printed = [
        output.get("text", "")
        for cell in nbformat.read(begun, as_version=4).cells
        for output in cell.get("outputs", [])
    ]
    assert any("○ two squared" in text for text in printed)
    assert any("✓ two squared" in text for text in printed)


@pytest.mark.parametrize(
    "name, title, fault",
    [
        ("5_short", "Why?", "name must be two digits"),
        ("26_Loud", "Why?", "name must be two digits"),
        ("26_calm", "A statement", "title must be a question"),
        ("25_again", "Why?", "there is a chapter 25"),
    ],
)
def test_what_is_refused(begun, capsys, name, title, fault):
    with pytest.raises(SystemExit) as stop:
        new_chapter.main([name, title, "--folder", str(begun.parent)])
    assert stop.value.code == 2 and fault in capsys.readouterr().err
    assert len(list(begun.parent.iterdir())) == 1
