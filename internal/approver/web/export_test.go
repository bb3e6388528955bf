package web

// Routes are those of the API.
func (h *Handler) Routes() []string { return h.routes }

// Marked says whether a character is marked.
func Marked(r rune) bool { return concernOf(r, len(string(r))) != harmless }
