package keys

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/authn/issued"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// bodyMost is the most that a body may take, in bytes.
const bodyMost = 256 << 10

type keyInput struct {
	ID string `path:"id" doc:"The id of an API key." example:"4vQxWc0aZkPm"`
}

type keyOutput struct {
	ETag string `header:"ETag" doc:"The state of the key; absent for a key of the configuration."`
	Body APIKey
}

type revokeInput struct {
	ID    string `path:"id"`
	Match string `header:"If-Match"`
}

// handlers are the operations on keys.
type handlers struct {
	keys  *issued.Keys
	log   *slog.Logger
	depth int // of bodies
}

// Register registers the operations on keys; keys may be nil. depth bounds how deep a body
// may nest.
func Register(d *httpapi.Document, keys *issued.Keys, depth int, log *slog.Logger) {
	h := &handlers{keys: keys, log: log, depth: depth}
	httpapi.Get(d, opList(), func(context.Context, *httpapi.NoInput) (APIKeyList, error) {
		list := APIKeyList{Keys: make([]APIKey, 0)}
		all := h.keys.List()
		for i := range all {
			list.Keys = append(list.Keys, keyOf(&all[i]))
		}
		return list, nil
	})
	httpapi.Register(d, opGet(), func(_ context.Context, in *keyInput) (*keyOutput, error) {
		key, err := h.keys.Get(in.ID)
		if err != nil {
			return nil, err
		}
		told := keyOf(&key)
		return &keyOutput{ETag: told.ETag, Body: told}, nil
	})
	httpapi.HandleValue(d, opCreate(d), "The key with its secret.", exampleNew(), h.create)
	httpapi.HandleValue(d, opUpdate(d), "The key as it is now.", exampleKey(), h.update)
	httpapi.HandleValue(d, opRotate(d), "The key with its new secret.", exampleNew(), h.rotate)
	httpapi.Get(d, openapi.Answers(opRevoke(), "The key was revoked.", map[string]any{"status": "revoked"}), h.revoke)
}

// create is POST /keys.
func (h *handlers) create(x *httpapi.Exchange, r *http.Request) (made NewAPIKey, err error) {
	var in APIKeyRequest
	if err := h.read(x, r, &in, "name", "owner", "groups", "scopes", "tools", "note", "expires_at"); err != nil {
		return made, err
	}
	w := issued.Wish{Name: in.Name, Owner: in.Owner, Groups: in.Groups, Scopes: in.Scopes, Tools: in.Tools, Note: in.Note}
	if in.Expires != nil {
		w.Expires = *in.Expires
	}
	key, secret, err := h.keys.Create(r.Context(), &x.Principal, w)
	if err != nil {
		return made, err
	}
	h.log.Info("an API key was made", "key", key.ID, "name", key.Name, "by", x.Principal.Name, "id", x.ID)
	made = NewAPIKey{keyOf(&key), secret}
	x.Set("Etag", made.ETag)
	x.Set("Location", "/keys/"+key.ID)
	return made, nil
}

// update is PATCH /keys/{id}.
func (h *handlers) update(x *httpapi.Exchange, r *http.Request) (told APIKey, err error) {
	id := r.PathValue("id")
	revision, err := h.condition(id, r.Header.Get("If-Match"))
	if err != nil {
		return told, err
	}
	var in APIKeyChange
	if err := h.read(x, r, &in, "owner", "groups", "scopes", "tools", "note", "expires_at"); err != nil {
		return told, err
	}
	key, err := h.keys.Update(r.Context(), &x.Principal, id, revision, in.into)
	if err != nil {
		return told, changed(err)
	}
	h.log.Info("an API key was changed", "key", key.ID, "name", key.Name, "by", x.Principal.Name, "id", x.ID)
	told = keyOf(&key)
	x.Set("Etag", told.ETag)
	return told, nil
}

// into changes what is named in the body.
func (c *APIKeyChange) into(w *issued.Wish) {
	if c.Owner != nil {
		w.Owner = *c.Owner
	}
	if c.Groups != nil {
		w.Groups = c.Groups
	}
	if c.Scopes != nil {
		w.Scopes = c.Scopes
	}
	if c.Tools != nil {
		w.Tools = c.Tools
	}
	if c.Note != nil {
		w.Note = *c.Note
	}
	if c.Expires != nil {
		w.Expires = *c.Expires
	}
}

// rotate is POST /keys/{id}/rotate.
func (h *handlers) rotate(x *httpapi.Exchange, r *http.Request) (made NewAPIKey, err error) {
	id := r.PathValue("id")
	revision, err := h.condition(id, r.Header.Get("If-Match"))
	if err != nil {
		return made, err
	}
	var in APIKeyRotation
	if r.ContentLength != 0 {
		if err := h.read(x, r, &in, "grace_seconds", "expires_at"); err != nil {
			return made, err
		}
	}
	grace, expires := issued.Grace, time.Time{}
	if in.Grace != nil {
		if *in.Grace < 0 || *in.Grace > int64(issued.MostGrace/time.Second) {
			return made, httpapi.BadMember("grace_seconds", "a whole number between 0 and %d", int64(issued.MostGrace/time.Second))
		}
		grace = time.Duration(*in.Grace) * time.Second
	}
	if in.Expires != nil {
		expires = *in.Expires
	}
	key, secret, err := h.keys.Rotate(r.Context(), &x.Principal, id, revision, grace, expires)
	if err != nil {
		return made, changed(err)
	}
	h.log.Info("an API key was rotated", "key", key.ID, "name", key.Name, "by", x.Principal.Name, "id", x.ID)
	made = NewAPIKey{keyOf(&key), secret}
	x.Set("Etag", made.ETag)
	return made, nil
}

// revoke is DELETE /keys/{id}.
func (h *handlers) revoke(ctx context.Context, in *revokeInput) (RevokedAPIKey, error) {
	revision, err := h.condition(in.ID, in.Match)
	if err != nil {
		return RevokedAPIKey{}, err
	}
	if err := h.keys.Revoke(ctx, in.ID, revision); err != nil {
		return RevokedAPIKey{}, changed(err)
	}
	x := httpapi.Of(ctx)
	h.log.Info("an API key was revoked", "key", in.ID, "by", x.Principal.Name, "id", x.ID)
	return RevokedAPIKey{Status: "revoked"}, nil
}

// read reads a body with these members.
func (h *handlers) read(x *httpapi.Exchange, r *http.Request, v any, members ...string) error {
	body, err := x.ReadBody(r, bodyMost)
	if err != nil {
		return err
	}
	if _, err := httpapi.ReadObject(body, bodyMost, h.depth, members...); err != nil {
		return err
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(v); err != nil {
		return schema.Errorf(schema.KindInvalidRequest, "The body cannot be read: %s.", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// condition returns the revision that a request with this header changes.
func (h *handlers) condition(id, match string) (revision uint64, err error) {
	now, err := h.keys.Get(id)
	match = strings.TrimSpace(match)
	switch {
	case err != nil:
		return 0, err
	case now.Configured:
		return 0, nil // which is refused for that
	case match == "*":
		return now.Revision, nil
	case match == "":
		return 0, schema.Errorf(problem.KindUnguarded, "Send If-Match with the ETag of the API key, %s, to change what you have seen.", tagOf(&now))
	}
	text, bad := strconv.Unquote(match)
	revision, parse := strconv.ParseUint(text, 10, 64)
	if bad != nil || parse != nil || revision == 0 {
		return 0, changed(issued.ErrChanged) // a tag that we never gave
	}
	return revision, nil
}

// changed makes a failed condition of the word of package issued for it.
func changed(err error) error {
	if errors.Is(err, issued.ErrChanged) {
		return schema.Errorf(problem.KindChanged, "The API key is not in the state that the request names, so nothing changed. GET /keys has its state.")
	}
	return err
}
