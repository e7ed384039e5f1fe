"""Records: positions, reading, producing, and how they are typed and printed."""
