"""Multi30K: 29,000 image captions in English, German and French.

The repository of the corpus states no licence, and the captions derive from Flickr30K, which is
for non-commercial research. So the files are not part of the package: they are downloaded or
taken from the user's data directory, and their SHA-256 is verified.
"""

from functools import partial
from pathlib import Path

from transformer.data.corpora.download import DownloadError, download, sha256
from transformer.data.corpora.family import Family
from transformer.data.corpora.local import cache_directory, find_file, how_to_provide
from transformer.data.parallel import Split, load_parallel_files

LICENCE = "for non-commercial research; Multi30K, https://github.com/multi30k/dataset"

FOLDER = "multi30k-task1"

_COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
SOURCES = (
    f"https://raw.githubusercontent.com/multi30k/dataset/{_COMMIT}/data/task1/raw/",
    f"https://cdn.jsdelivr.net/gh/multi30k/dataset@{_COMMIT}/data/task1/raw/",
)

SPLITS = {
    "train": "train",
    "validation": "val",
    "test": "test_2016_flickr",
    "test2017": "test_2017_flickr",
    "mscoco": "test_2017_mscoco",
}

SHA256 = {
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
    "test_2017_flickr.de.gz": "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
    "test_2017_flickr.en.gz": "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
    "test_2017_flickr.fr.gz": "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496",
    "test_2017_mscoco.de.gz": "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338",
    "test_2017_mscoco.en.gz": "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58",
    "test_2017_mscoco.fr.gz": "754f3072ba9f124569ba5258b32730fc1d214bbf8e0c6dfb2b74401676220db0",
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
}


def load_multi30k(source: str, target: str, data_dir: Path | str | None = None) -> dict[str, Split]:
    """Load ``train``, ``validation``, ``test`` (of 2016), ``test2017`` and ``mscoco``.

    Missing files are downloaded. The languages are two of ``en``, ``de`` and ``fr``.

    Raises:
        DownloadError: if a file is not on this machine and cannot be downloaded.
        OSError: if a download cannot be written.
        ValueError: if a file in the folder ``multi30k-task1`` of the data directory is not the one
            of the corpus. A file in the data directory itself is then ignored.
    """
    return {
        name: load_parallel_files(
            _provide(f"{stem}.{source}.gz", data_dir), _provide(f"{stem}.{target}.gz", data_dir)
        )
        for name, stem in SPLITS.items()
    }


def _provide(name: str, data_dir: Path | str | None) -> Path:
    """Return the path of a verified file: the user's, the cached one, or a new download."""
    own = find_file(name, FOLDER, data_dir)
    if own is not None:
        # A score on Multi30K refers to exactly these sentences.
        if (found := sha256(own)) == SHA256[name]:
            return own
        # Elsewhere, a file such as train.en may be of any other corpus.
        if own.parent.name == FOLDER:
            advice = "" if own.name == name else f"; provide it packed, as {name}"
            raise ValueError(
                f"{own} is not Multi30K's: SHA-256 {found}, expected {SHA256[name]}{advice}"
            )
    cached = cache_directory() / FOLDER / name
    if not cached.is_file() or sha256(cached) != SHA256[name]:
        try:
            download([source + name for source in SOURCES], cached, SHA256[name])
        except DownloadError as error:
            raise DownloadError(f"{error}; {how_to_provide(FOLDER)}") from None
        except OSError as error:  # the disk's
            raise OSError(f"{error}; XDG_CACHE_HOME names the folder for downloads") from error
    return cached


def _files(language: str) -> list[tuple[str, str]]:
    stems = SPLITS.values()
    return [(FOLDER, f"{stem}.{side}.gz") for stem in stems for side in ("en", language)]


FAMILY = Family(partial(load_multi30k, "en"), LICENCE, "download", _files)
