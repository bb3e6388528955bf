package web

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Routes are those of the API.
func (h *Handler) Routes() []string { return h.api.documented }

// Marked says whether a character is marked.
func Marked(r rune) bool { return concernOf(r, len(string(r))) != harmless }

// AllRoutes are those of everything that is served.
func (h *Handler) AllRoutes() []string { return h.routes.all }

// Sides puts a difference together again: what was before, and what is after.
func Sides(before, after []byte) (a, b []byte, inOrder bool) {
	inOrder = true
	valid := utf8.Valid(before) && utf8.Valid(after)
	var x, y [][]byte
	for _, l := range whole(before, after) {
		text := slices.Concat(l.Head, l.Body, l.Tail)
		inOrder = inOrder && (!valid || utf8.Valid(l.Head) && utf8.Valid(l.Body) && utf8.Valid(l.Tail))
		if l.Op != added {
			x = append(x, text)
		}
		if l.Op != removed {
			y = append(y, text)
		}
	}
	return bytes.Join(x, []byte("\n")), bytes.Join(y, []byte("\n")), inOrder
}

// Compared is a difference as signs and texts.
func Compared(before, after []byte) (out []string) {
	for _, l := range comparedJSON(before, after) {
		switch {
		case l.Op == skipped:
			out = append(out, fmt.Sprintf("(%d)", l.Skipped))
		case len(l.Head)+len(l.Tail) > 0:
			out = append(out, fmt.Sprintf("%s%s[%s]%s", l.Sign(), l.Head, l.Body, l.Tail))
		default:
			out = append(out, l.Sign()+string(l.Body))
		}
	}
	return out
}

// FormToken is the token of a form for who has the cookie, as it was set.
func (h *Handler) FormToken(cookie, path string) string {
	_, value, _ := strings.Cut(cookie, "=")
	value, _, _ = strings.Cut(value, ";")
	return h.access.formToken(value, path)
}

// PermissionState says how a permission stands.
var PermissionState = permissionState

// unserved is an API that only reads bodies.
var unserved = sync.OnceValue(func() *api {
	a, err := newAPI(&Options{}, nil, nil, &routes{mux: http.NewServeMux()}, nil, nil, nil)
	if err != nil {
		panic(err)
	}
	return a
})

// Decisions reads a list of decisions and returns their ids.
func Decisions(body []byte) (ids []string, err error) {
	var all Answers
	if err := unserved().shapes.read("Answers", body, &all); err != nil {
		return nil, err
	}
	for _, one := range all.Decisions {
		ids = append(ids, one.ID)
	}
	return ids, all.check()
}

// Places are the pointers of what a permission can hold fast.
func Places(args []byte) (pointers []string) {
	for _, l := range leaves(args) {
		pointers = append(pointers, l.Pointer)
	}
	return pointers
}
