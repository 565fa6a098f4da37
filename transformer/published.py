"""Where the repository and the pages of the book are published; ``make address`` sets both."""

#: The repository, such as ``https://github.com/owner/name``; None until it has an address.
REPOSITORY: str | None = None
#: The pages of the book, with a slash at the end; None until they have an address.
PAGES: str | None = None
