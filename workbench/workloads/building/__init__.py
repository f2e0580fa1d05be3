"""From the rows of a file to the request table: every cell checked, every repair counted."""
