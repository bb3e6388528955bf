package console

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	keysPath    = Root + "/keys"
	newKeyPath  = keysPath + "/new"
	oneKeyPath  = keysPath + "/key"
	expiresForm = "2006-01-02T15:04:05" // the format in which browsers send a time with seconds
)

// keyPages serves the pages of the front door's API keys.
type keyPages struct{ *Console }

// keyRow is an API key in a list.
type keyRow struct {
	K     callyard.APIKey
	State string // expired or ending; empty for others
	API   bool   // created over the API; others are from the configuration
}

// soonEnds is the time before its expiry at which a key is marked.
const soonEnds = 7 * 24 * time.Hour

func (c keyPages) row(k callyard.APIKey) keyRow {
	r := keyRow{K: k, API: k.Origin == "api"}
	if k.ExpiresAt != nil {
		switch left := k.ExpiresAt.Sub(c.o.Now()); {
		case left <= 0:
			r.State = "expired"
		case left < soonEnds:
			r.State = "ends soon"
		}
	}
	return r
}

// Limits describes the limits of the key, or is empty.
func (r keyRow) Limits() string {
	if r.K.Limits == nil {
		return ""
	}
	var parts []string
	for _, part := range []struct{ value, unit string }{{decimal(r.K.Limits.Rate), "calls per second"}, {deref(r.K.Limits.Burst), "at once"}, {deref(r.K.Limits.InFlight), "in flight"}} {
		if part.value != "" {
			parts = append(parts, part.value+" "+part.unit)
		}
	}
	return strings.Join(parts, ", ")
}

type keysPage struct {
	Rows       []keyRow
	All, Found int
	Query      string
	Tenant     string // the filter; default selects keys without a tenant
	Cut        bool
	Done       string
}

// list serves the page of all keys.
func (c keyPages) list(w http.ResponseWriter, r *http.Request, v Visit) error {
	all, err := get[callyard.APIKeyList](r.Context(), c.Console, v, with0(api.ListKeys))
	if err != nil {
		return c.orKey(w, r, err)
	}
	q := r.URL.Query()
	page := keysPage{All: len(all.Keys), Query: strings.TrimSpace(q.Get("q")), Tenant: strings.TrimSpace(q.Get("tenant")), Done: doneOf(r, v)}
	for _, k := range all.Keys {
		if (page.Tenant == "" || schema.TenantID(page.Tenant).Is(schema.TenantID(text(k.Tenant)))) && has(page.Query, k.Name, k.ID, text(k.Owner), text(k.Tenant)) {
			page.Rows = append(page.Rows, c.row(k))
		}
	}
	page.Found = len(page.Rows)
	if page.Cut = page.Found > maxRows; page.Cut {
		page.Rows = page.Rows[:maxRows]
	}
	return c.render(w, v, http.StatusOK, "keys", view{Title: "Keys", Here: keysPath, Page: page})
}

// has reports whether any of the texts contains the query, ignoring case.
func has(query string, texts ...string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(query)) })
}

// managesKeys returns an error unless the user's key may see API keys.
func (c *Console) managesKeys(ctx context.Context, v Visit) error {
	_, err := c.ask(ctx, v, with0(api.ListKeys))
	return err
}

// ask serves the form of a new key.
func (c keyPages) ask(w http.ResponseWriter, r *http.Request, v Visit) error {
	// A user who may not see keys may not create any. Report it before the form is filled in.
	if err := c.managesKeys(r.Context(), v); err != nil {
		return c.orKey(w, r, err)
	}
	return c.showNew(w, v, http.StatusOK, &keyForm{Scopes: newKeyScopes})
}

func (c keyPages) showNew(w http.ResponseWriter, v Visit, status int, form *keyForm) error {
	form.Token = v.Token(newKeyPath)
	return c.render(w, v, status, "newkey", view{Title: "New API key", Here: keysPath, Page: form})
}

// secretPage shows a secret. It is the response to the form, so that the secret is in no
// address. The pages are never stored.
type secretPage struct {
	K       callyard.NewAPIKey
	Rotated bool
	Grace   string // end of the former secret's grace period; empty if it is already invalid
}

// create creates a key and shows its secret.
func (c keyPages) create(w http.ResponseWriter, r *http.Request, v Visit) error {
	form := readForm(r.PostForm)
	body := callyard.APIKeyRequest{Name: form.Name, Owner: optional(form.Owner), Tenant: optional(form.Tenant), Note: optional(form.Note), Groups: listed(form.Groups), Tools: listed(form.Tools)}
	if form.Role == "" {
		body.Scopes = listed(form.Scopes)
	} else {
		body.Role = new(callyard.APIKeyRequestRole(form.Role))
	}
	more, err := form.values(listed(newKeyScopes))
	if err == nil {
		body.ExpiresAt = more.Expires
		if more.Limits != (callyard.APIKeyLimits{}) {
			body.Limits = &more.Limits
		}
		var made callyard.NewAPIKey
		if made, err = get[callyard.NewAPIKey](r.Context(), c.Console, v, with(api.CreateKey, body)); err == nil {
			c.acted(v, "make an API key", "key", made.ID, "name", made.Name)
			return c.render(w, v, http.StatusCreated, "secret", view{Title: "New API key", Here: keysPath, Page: secretPage{K: made}})
		}
	}
	return c.showNew(w, v, form.refuse(err), &form)
}
