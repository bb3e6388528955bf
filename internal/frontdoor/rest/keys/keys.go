package keys

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/authn/issued"
	"github.com/callyard/callyard/internal/authn/scope"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

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
	depth int // maximum nesting of bodies
}

// Register registers the operations on keys. keys may be nil. depth limits the nesting of bodies.
func Register(d *httpapi.Document, keys *issued.Keys, depth int, log *slog.Logger) {
	h := &handlers{keys: keys, log: log, depth: depth}
	d.NameSchema(reflect.TypeFor[scope.Limits](), "APIKeyLimits")
	httpapi.Get(d, openapi.Answers(opList(), "The keys that you may manage.", map[string]any{"keys": []any{exampleKey()}}), func(ctx context.Context, _ *httpapi.NoInput) (APIKeyList, error) {
		list := APIKeyList{Keys: make([]APIKey, 0)}
		all := h.keys.List(&httpapi.Of(ctx).Principal)
		for i := range all {
			list.Keys = append(list.Keys, keyOf(&all[i]))
		}
		return list, nil
	})
	httpapi.Register(d, openapi.Answers(opGet(), "The key.", exampleKey()), func(ctx context.Context, in *keyInput) (*keyOutput, error) {
		key, err := h.keys.Get(&httpapi.Of(ctx).Principal, in.ID)
		if err != nil {
			return nil, err
		}
		answer := keyOf(&key)
		return &keyOutput{ETag: answer.ETag, Body: answer}, nil
	})
	httpapi.HandleValue(d, opCreate(d), "The key with its secret.", exampleNew(), h.create)
	httpapi.HandleValue(d, opUpdate(d), "The changed key.", exampleKey(), h.update)
	httpapi.HandleValue(d, opRotate(d), "The key with its new secret.", exampleNew(), h.rotate)
	httpapi.Get(d, openapi.Answers(opRevoke(), "The key was revoked.", map[string]any{"status": "revoked"}), h.revoke)
}

// create serves POST /keys.
func (h *handlers) create(x *httpapi.Exchange, r *http.Request) (made NewAPIKey, err error) {
	in, err := h.read(x, r, "name", "tenant", "owner", "groups", "role", "scopes", "tools", "limits", "note", "expires_at")
	if err != nil {
		return made, err
	}
	var w issued.Settings
	if err := cmp.Or(in.text("name", true, issued.MostName, &w.Name), in.text("tenant", false, issued.MostTenant, (*string)(&w.Tenant)), in.applyTo(&w)); err != nil {
		return made, err
	}
	key, secret, err := h.keys.Create(r.Context(), &x.Principal, w)
	if err != nil {
		return made, err
	}
	h.log.Info("an API key was created", "key", key.ID, "name", key.Name, "by", x.Principal.Name, "id", x.ID)
	made = NewAPIKey{keyOf(&key), secret}
	x.Changes(nil, recordOf(&key))
	x.Set("Etag", made.ETag)
	x.Set("Location", "/keys/"+key.ID)
	return made, nil
}

// update serves PATCH /keys/{id}.
func (h *handlers) update(x *httpapi.Exchange, r *http.Request) (answer APIKey, err error) {
	in, err := h.read(x, r, "owner", "groups", "role", "scopes", "tools", "limits", "note", "expires_at")
	if err != nil {
		return answer, err
	}
	if err := in.applyTo(new(issued.Settings)); err != nil { // validate the body before the key is looked up
		return answer, err
	}
	id := r.PathValue("id")
	before, revision, err := h.condition(&x.Principal, id, r.Header.Get("If-Match"))
	if err != nil {
		return answer, err
	}
	key, err := h.keys.Update(r.Context(), &x.Principal, id, revision, func(w *issued.Settings) { _ = in.applyTo(w) }) // in was validated before
	if err != nil {
		return answer, changed(err)
	}
	h.log.Info("an API key was changed", "key", key.ID, "name", key.Name, "by", x.Principal.Name, "id", x.ID)
	answer = keyOf(&key)
	x.Changes(recordOf(&before), recordOf(&key))
	x.Set("Etag", answer.ETag)
	return answer, nil
}

// rotate serves POST /keys/{id}/rotate.
func (h *handlers) rotate(x *httpapi.Exchange, r *http.Request) (made NewAPIKey, err error) {
	in := members{}
	if r.ContentLength != 0 {
		if in, err = h.read(x, r, "grace_seconds", "expires_at"); err != nil {
			return made, err
		}
	}
	var expires time.Time
	grace := int64(issued.Grace / time.Second)
	const most = int64(issued.MostGrace / time.Second)
	if err := cmp.Or(httpapi.ReadMember(in, "grace_seconds", false, graceIs, &grace), in.at("expires_at", &expires)); err != nil {
		return made, err
	}
	if grace < 0 || grace > most {
		return made, httpapi.BadMember("grace_seconds", graceIs)
	}
	id := r.PathValue("id")
	before, revision, err := h.condition(&x.Principal, id, r.Header.Get("If-Match"))
	if err != nil {
		return made, err
	}
	key, secret, err := h.keys.Rotate(r.Context(), &x.Principal, id, revision, time.Duration(grace)*time.Second, expires)
	if err != nil {
		return made, changed(err)
	}
	h.log.Info("an API key was rotated", "key", key.ID, "name", key.Name, "by", x.Principal.Name, "id", x.ID)
	made = NewAPIKey{keyOf(&key), secret}
	x.Changes(recordOf(&before), recordOf(&key))
	x.Set("Etag", made.ETag)
	return made, nil
}

// revoke serves DELETE /keys/{id}.
func (h *handlers) revoke(ctx context.Context, in *revokeInput) (RevokedAPIKey, error) {
	x := httpapi.Of(ctx)
	before, revision, err := h.condition(&x.Principal, in.ID, in.Match)
	if err != nil {
		return RevokedAPIKey{}, err
	}
	if err := h.keys.Revoke(ctx, &x.Principal, in.ID, revision); err != nil {
		return RevokedAPIKey{}, changed(err)
	}
	h.log.Info("an API key was revoked", "key", in.ID, "by", x.Principal.Name, "id", x.ID)
	x.Changes(recordOf(&before), nil)
	return RevokedAPIKey{Status: "revoked"}, nil
}

// condition returns the current key, and the revision that a request with this header changes.
func (h *handlers) condition(by *schema.Principal, id, match string) (now issued.Key, revision uint64, err error) {
	now, err = h.keys.Get(by, id)
	match = strings.TrimSpace(match)
	switch {
	case err != nil:
		return now, 0, err
	case now.Configured:
		return now, 0, nil // the change is refused for that
	case match == "*":
		return now, now.Revision, nil
	case match == "":
		return now, 0, schema.Errorf(problem.KindUnguarded, "The API key exists. To change exactly this version of it, send If-Match with its ETag, %s.", httpapi.TagOf(now.Revision))
	}
	revision, ok := httpapi.RevisionOf(match)
	if !ok {
		return now, 0, changed(issued.ErrChanged) // not a tag of a key
	}
	return now, revision, nil
}

// changed converts the error of package issued for a changed key into a failed condition.
func changed(err error) error {
	if errors.Is(err, issued.ErrChanged) {
		return schema.Errorf(problem.KindChanged, "The API key has changed: the ETag in If-Match is not its current one. Nothing was changed. Read the key again with GET /keys/{id}.")
	}
	return err
}
