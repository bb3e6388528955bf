package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// maxKey is an upper bound of the length of a key, in bytes.
const maxKey = 512

type keyPage struct {
	FrontDoor, Token, Next, Refusal string
	Has                             bool // there is a key, and the form replaces it
}

// orKey shows the page that asks for a key if err is caused by a missing or invalid key. It returns
// all other errors.
func (c *Console) orKey(w http.ResponseWriter, r *http.Request, err error) error {
	if schema.KindOf(err) != schema.KindUnauthenticated || r.Method == http.MethodPost {
		return err
	}
	http.Redirect(w, r, Root+"/key?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
	return nil
}

// returnPage returns a page of the console for any requested address.
func returnPage(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host != "" || u.Scheme != "" || u.Opaque != "" || u.User != nil || strings.ContainsAny(text, "\\\r\n\t") {
		return Root
	}
	if p := u.EscapedPath(); p != Root && !strings.HasPrefix(p, Root+"/") || strings.Contains(p, "..") || strings.Contains(p, "//") {
		return Root
	}
	return u.RequestURI()
}

func (c *Console) askKey(w http.ResponseWriter, r *http.Request, v Visit) error {
	return c.showKey(w, v, http.StatusOK, returnPage(r.URL.Query().Get("next")), "")
}

func (c *Console) showKey(w http.ResponseWriter, v Visit, status int, next, refusal string) error {
	page := keyPage{FrontDoor: c.o.FrontDoor(), Token: v.Token(Root + "/key"), Next: next, Refusal: refusal, Has: v.Key != ""}
	return c.render(w, v, status, "key", view{Title: "API key of the front door", Page: page})
}

// takeKey stores a key for the user's session if the front door accepts it.
func (c *Console) takeKey(w http.ResponseWriter, r *http.Request, v Visit) error {
	next, key := returnPage(r.PostForm.Get("next")), strings.TrimSpace(r.PostForm.Get("key"))
	if r.PostForm.Get("do") == "forget" {
		v.Keep("")
		http.Redirect(w, r, Root+"/key", http.StatusSeeOther)
		return nil
	}
	err := error(schema.Errorf(schema.KindInvalidRequest, "Enter an API key of the front door."))
	if key != "" && len(key) <= maxKey && !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		probe := v
		probe.Key = key
		_, err = c.ask(r.Context(), probe, with0(api.GetVersion))
	}
	if err != nil {
		d := problem.Of(err)
		return c.showKey(w, v, d.Status, next, d.Detail)
	}
	v.Keep(key)
	c.o.Log.Info("a person opened the console with an API key", "person", v.Person)
	http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // back lets pages of the console through only
	return nil
}
