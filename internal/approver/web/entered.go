package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// entry is a field of a submitted form.
type entry struct{ Name, Label, Value string }

// unshown lists secrets and the fields that a page fills in itself. A page that repeats the input
// omits them. It also omits fields with a dot in their name, because another field contains their
// value.
var unshown = []string{"token", "digest", "once", "etag", "id", "at", "do", "to", "next", "kind", "server", "tool", "team", "user", "answer", "key", "sure"}

// labels maps field names to labels, if the label differs from the name.
var labels = map[string]string{"reason": "Comment", "preset": "Reason for denial", "uses": "Maximum calls", "for": "Valid for", "pattern": "Matching arguments"}

// entered returns the input of the person in the submitted form r, so that it is not lost.
func entered(r *http.Request) (all []entry) {
	for name, values := range r.PostForm {
		if name != "" && len(values) == 1 && strings.TrimSpace(values[0]) != "" && !strings.Contains(name, ".") && !slices.Contains(unshown, name) {
			label := cmp.Or(labels[name], strings.ToUpper(name[:1])+name[1:])
			all = append(all, entry{name, label, values[0]})
		}
	}
	slices.SortFunc(all, byName)
	return all
}

// resent returns the submitted fields of r, without the form token and secrets.
func resent(r *http.Request) (all []entry) {
	for name, values := range r.PostForm {
		if name != "token" && name != "key" && len(values) == 1 {
			all = append(all, entry{Name: name, Value: values[0]})
		}
	}
	slices.SortFunc(all, byName)
	return all
}

func byName(a, b entry) int { return strings.Compare(a.Name, b.Name) }

// pageBehind returns the page of ours from which a form was submitted.
func pageBehind(r *http.Request) (to string, ok bool) {
	from, err := url.Parse(r.Referer())
	if r.Method != http.MethodPost || err != nil || from.Host != r.Host {
		return "", false
	}
	to = next((&url.URL{Path: from.Path, RawQuery: from.RawQuery}).String())
	return to, to != "/"
}

// showEnded responds to a form whose session has ended, with the input of the person and a link that
// opens the sign-in in a new tab. again adds a button to submit the form again.
func (s *site) showEnded(w http.ResponseWriter, r *http.Request, v visitor, err error, again bool) error {
	d := problem.Of(err)
	back, ok := pageBehind(r)
	if !ok {
		back = "/"
	}
	m := message{
		Text: d.Detail, To: "/sign-in?next=" + url.QueryEscape(back), Label: "Sign in in a new tab", NewTab: true, Entered: entered(r),
	}
	if again {
		m.Again, m.Fields = r.URL.EscapedPath(), resent(r)
	}
	return s.render(w, d.Status, "message", v, view{Title: "Session ended", Page: m})
}

// errExpired is the error for a form that was submitted in another session than that of its page.
func errExpired() error {
	return schema.Errorf(schema.KindForbidden, "This form has expired, or belongs to another session; nothing was recorded. What you entered is still here: check the request, and decide again.")
}
