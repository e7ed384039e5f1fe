"""The pages: each module reads what a page shows, and plans the changes that it offers."""
