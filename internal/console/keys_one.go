package console

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// grace is the time for which the former secret of a key remains valid after a rotation.
type grace struct {
	Seconds int64
	Label   string
}

// graces lists the options of the form. The second is the default of the API.
var graces = []grace{{0, "End it at once"}, {3600, "1 hour"}, {86400, "1 day"}, {604800, "7 days"}}

// difference is a field in which the key differs from the submitted form.
type difference struct{ Field, Now, Yours string }

type oneKeyPage struct {
	keyRow
	Form        *keyForm
	Graces      []grace
	Grace       int64 // the chosen one
	ETag, Token string
	Done        string
	Notice      string       // an error of a form other than the form of changes
	Changed     bool         // another user changed the key
	Differences []difference // the key's current values and the submitted ones
}

// show serves the page of one key.
func (c keyPages) show(w http.ResponseWriter, r *http.Request, v Visit) error {
	id := r.URL.Query().Get("id")
	if id == "" {
		http.Redirect(w, r, keysPath, http.StatusSeeOther)
		return nil
	}
	k, err := c.one(r.Context(), v, id)
	if err != nil {
		return c.orKey(w, r, err)
	}
	form := formOf(&k)
	page := c.page(&k, &form)
	page.Done = doneOf(r, v)
	return c.showOne(w, v, http.StatusOK, page)
}

func (c keyPages) one(ctx context.Context, v Visit, id string) (callyard.APIKey, error) {
	return get[callyard.APIKey](ctx, c.Console, v, with(api.GetKey, id))
}

func (c keyPages) page(k *callyard.APIKey, form *keyForm) *oneKeyPage {
	return &oneKeyPage{keyRow: c.row(*k), Form: form, Graces: graces, Grace: 86400, ETag: text(k.Etag)}
}

func (c keyPages) showOne(w http.ResponseWriter, v Visit, status int, page *oneKeyPage) error {
	page.Token = v.Token(oneKeyPath)
	return c.render(w, v, status, "apikey", view{Title: page.K.Name, Here: keysPath, Page: page})
}

// act changes, rotates or revokes a key. The entity tag in the form identifies the state of the key
// that the user saw.
func (c keyPages) act(w http.ResponseWriter, r *http.Request, v Visit) error {
	f := r.PostForm
	id, tag := f.Get("id"), f.Get("etag")
	switch f.Get("do") {
	case "change":
		return c.change(w, r, v, id, tag)
	case "rotate":
		return c.rotate(w, r, v, id, tag)
	case "revoke":
		return c.revoke(w, r, v, id, tag)
	}
	return schema.Errorf(schema.KindInvalidRequest, "The form does not say what to do with the key.")
}

// again shows the page of a key with an error. form has the submitted values; if nil, the current
// values of the key are shown.
func (c keyPages) again(w http.ResponseWriter, r *http.Request, v Visit, id string, form *keyForm, cause error) error {
	k, err := c.one(r.Context(), v, id)
	if err != nil {
		return err // the key is gone or cannot be read: report that instead
	}
	now := formOf(&k)
	page := c.page(&k, &now)
	status := problem.Of(cause).Status
	if page.Changed = schema.KindOf(cause) == problem.KindChanged; page.Changed && form != nil {
		page.Differences = now.differences(form)
	}
	if form != nil {
		form.Known, form.Name, form.Tenant = true, k.Name, text(k.Tenant)
		page.Form = form
	}
	switch {
	case page.Changed: // the page reports it separately
	case form != nil:
		page.Form.refuse(cause)
	default:
		page.Notice = problem.Of(cause).Detail
	}
	return c.showOne(w, v, status, page)
}

// differences returns the fields in which the key's current values differ from a form.
func (f *keyForm) differences(yours *keyForm) (all []difference) {
	for _, d := range []difference{
		{"Owner", f.Owner, yours.Owner}, {"Role", f.Role, yours.Role}, {"Scopes", f.Scopes, yours.Scopes}, {"Tools", f.Tools, yours.Tools}, {"Groups", f.Groups, yours.Groups},
		{"Calls per second", f.Rate, yours.Rate}, {"Calls at once within the rate", f.Burst, yours.Burst}, {"Calls in flight", f.InFlight, yours.InFlight},
		{"Note", f.Note, yours.Note}, {"Expires", f.Expires, yours.Expires},
	} {
		if d.Now != d.Yours {
			all = append(all, d)
		}
	}
	return all
}

// edit is the body of PATCH /keys/{id}. Absent fields are unchanged. An empty list is a value, and
// limits without members are no limits.
type edit struct {
	Owner   *string                `json:"owner,omitempty"`
	Groups  *[]string              `json:"groups,omitempty"`
	Role    *string                `json:"role,omitempty"`
	Scopes  *[]string              `json:"scopes,omitempty"`
	Tools   *[]string              `json:"tools,omitempty"`
	Limits  *callyard.APIKeyLimits `json:"limits,omitempty"`
	Note    *string                `json:"note,omitempty"`
	Expires *time.Time             `json:"expires_at,omitempty"`
}

// editOf returns the changes that a form makes to a key.
func editOf(k *callyard.APIKey, form *keyForm) (e edit, err error) {
	if form.Owner != text(k.Owner) {
		e.Owner = &form.Owner
	}
	if form.Note != text(k.Note) {
		e.Note = &form.Note
	}
	for _, l := range []struct {
		had  []string
		want string
		to   **[]string
	}{{k.Groups, form.Groups, &e.Groups}, {k.Tools, form.Tools, &e.Tools}} {
		if want := listed(l.want); !slices.Equal(want, l.had) {
			*l.to = &want
		}
	}
	scopes := listed(form.Scopes)
	switch role := deref(k.Role); {
	case form.Role != "" && form.Role != role:
		e.Role = &form.Role
	case form.Role == "" && (role != "" || !slices.Equal(scopes, k.Scopes)):
		e.Scopes = &scopes
	}
	more, err := form.values(k.Scopes)
	if at := more.Expires; at != nil && (k.ExpiresAt == nil || !at.Equal(k.ExpiresAt.Truncate(time.Second))) {
		e.Expires = at
	}
	if was := formOf(k); was.Rate != form.Rate || was.Burst != form.Burst || was.InFlight != form.InFlight {
		e.Limits = &more.Limits
	}
	return e, err
}

func (c keyPages) change(w http.ResponseWriter, r *http.Request, v Visit, id, tag string) error {
	form := readForm(r.PostForm)
	k, err := c.one(r.Context(), v, id)
	if err != nil {
		return err
	}
	if text(k.Etag) != tag {
		return c.again(w, r, v, id, &form, schema.Errorf(problem.KindChanged, "The API key has changed."))
	}
	e, err := editOf(&k, &form)
	if err != nil {
		return c.again(w, r, v, id, &form, err)
	}
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := c.Console.ask(r.Context(), v, func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
		return client.UpdateKeyWithBody(ctx, id, &callyard.UpdateKeyParams{IfMatch: &tag}, "application/json", bytes.NewReader(body))
	}); err != nil {
		return c.again(w, r, v, id, &form, err)
	}
	c.acted(v, "change an API key", "key", id)
	http.Redirect(w, r, at(oneKeyPath, "id", id, "done", v.done("key")), http.StatusSeeOther)
	return nil
}

func (c keyPages) rotate(w http.ResponseWriter, r *http.Request, v Visit, id, tag string) error {
	seconds, err := strconv.ParseInt(r.PostForm.Get("grace"), 10, 64)
	if err != nil {
		return c.again(w, r, v, id, nil, schema.Errorf(schema.KindInvalidRequest, "Choose for how long the present secret stays valid."))
	}
	made, err := get[callyard.NewAPIKey](r.Context(), c.Console, v, with3(api.RotateKey, id, &callyard.RotateKeyParams{IfMatch: &tag}, callyard.APIKeyRotation{GraceSeconds: &seconds}))
	if err != nil {
		return c.again(w, r, v, id, nil, err)
	}
	c.acted(v, "rotate an API key", "key", id)
	page := secretPage{K: made, Rotated: true}
	for _, former := range made.FormerSecrets {
		page.Grace = max(page.Grace, former.Until.UTC().Format("2006-01-02 15:04 UTC"))
	}
	return c.render(w, v, http.StatusOK, "secret", view{Title: made.Name, Here: keysPath, Page: page})
}

func (c keyPages) revoke(w http.ResponseWriter, r *http.Request, v Visit, id, tag string) error {
	if r.PostForm.Get("sure") != "yes" {
		return c.again(w, r, v, id, nil, schema.Errorf(schema.KindInvalidRequest, "Nothing was revoked: confirm it with the checkbox."))
	}
	if _, err := c.Console.ask(r.Context(), v, with2(api.RevokeKey, id, &callyard.RevokeKeyParams{IfMatch: &tag})); err != nil {
		return c.again(w, r, v, id, nil, err)
	}
	c.acted(v, "revoke an API key", "key", id)
	http.Redirect(w, r, at(keysPath, "done", v.done("revoke")), http.StatusSeeOther)
	return nil
}
