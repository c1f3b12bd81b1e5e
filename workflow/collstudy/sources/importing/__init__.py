"""Other authors' measurements: `reading` reads files (in `formats`), `checking` checks rows, `drafting` drafts a study of a folder."""
