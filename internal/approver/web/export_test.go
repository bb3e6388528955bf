package web

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// Routes are those of the API.
func (h *Handler) Routes() []string { return h.api.documented }

// AllRoutes are those of everything that is served.
func (h *Handler) AllRoutes() []string { return h.routes.all }

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
	a, err := newAPI(&Options{}, nil, nil, &routes{mux: http.NewServeMux()}, nil, nil, nil, nil)
	if err != nil {
		panic(err)
	}
	return a
})

// Decisions reads a list of decisions and returns their ids.
func Decisions(body []byte) (ids []schema.ApprovalID, err error) {
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

// Vault is where keys of the console lie.
type Vault struct{ v *vault }

// NewVault returns an empty one.
func NewVault(now func() time.Time, lifetime time.Duration) Vault {
	return Vault{newVault(now, lifetime)}
}

// Put keeps a key.
func (v Vault) Put(cookie, key string) { v.v.put(cookie, key) }

// Get finds a key.
func (v Vault) Get(cookie string) string { return v.v.get(cookie) }

// Dump is what lies in memory.
func (v Vault) Dump() string {
	var b strings.Builder
	for place, s := range v.v.by {
		b.Write(place[:])
		b.Write(s.text)
	}
	return b.String()
}
