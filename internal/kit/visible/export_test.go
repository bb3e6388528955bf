package visible

// Marked reports whether a character is marked.
func Marked(r rune) bool { return concernOf(r, len(string(r))) != harmless }
