"""The filler: it writes padding so that every commit log segment fills up, and is released to CDC, in bounded time."""
