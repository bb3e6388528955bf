package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// entry is a field of a form that was sent.
type entry struct{ Name, Label, Value string }

// unshown are the fields that a page fills in itself, and secrets: a page with what was
// entered does not repeat them. Fields with a dot in their name are parts of what others have as a whole.
var unshown = []string{"token", "digest", "once", "etag", "id", "do", "next", "kind", "server", "tool", "team", "user", "answer", "key", "sure"}

// labels are those of fields whose name is not what their page calls them.
var labels = map[string]string{"reason": "Comment", "preset": "Reason for denial", "uses": "Maximum calls", "for": "Valid for", "pattern": "Matching arguments"}

// entered returns what a person typed into the form that r sent, so that it is not lost with it.
func entered(r *http.Request) (all []entry) {
	for name, values := range r.PostForm {
		if len(values) == 1 && strings.TrimSpace(values[0]) != "" && !strings.Contains(name, ".") && !slices.Contains(unshown, name) {
			label := labels[name]
			if label == "" {
				label = strings.ToUpper(name[:1]) + name[1:]
			}
			all = append(all, entry{name, label, values[0]})
		}
	}
	slices.SortFunc(all, byName)
	return all
}

// resent returns the fields that r sent, without the token of its page and without secrets.
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

// pageBehind returns the page of ours from which a form was sent.
func pageBehind(r *http.Request) (to string, ok bool) {
	from, err := url.Parse(r.Referer())
	if r.Method != http.MethodPost || err != nil || from.Host != r.Host {
		return "", false
	}
	to = next((&url.URL{Path: from.Path, RawQuery: from.RawQuery}).String())
	return to, to != "/"
}

// showEnded answers a form whose session has ended: with what was entered, and a way to sign in that
// leaves this page open. again says that the form can be sent from here once more.
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

// errExpired says that a form was sent under another session than that of its page.
func errExpired() error {
	return schema.Errorf(schema.KindForbidden, "This form has expired, or belongs to another session; nothing was recorded. What you entered is still here: check the request, and decide again.")
}
