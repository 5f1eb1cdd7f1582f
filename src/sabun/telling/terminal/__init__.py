"""What every command shares: options, reading what was typed, paying, printing, progress."""
