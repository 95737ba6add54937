"""The room tracked without markers: simultaneous localisation and mapping with one camera."""
