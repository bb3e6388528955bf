package web

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/pkg/schema"
)

// Routes returns the routes of the API.
func (h *Handler) Routes() []string { return h.api.documented }

// AllRoutes returns all routes.
func (h *Handler) AllRoutes() []string { return h.routes.all }

// FormToken returns the form token for a cookie.
func (h *Handler) FormToken(cookie, path string) string {
	_, value, _ := strings.Cut(cookie, "=")
	value, _, _ = strings.Cut(value, ";")
	return h.access.formToken(value, path)
}

// SetHeartbeat sets the interval of the checks of later event streams.
func (h *Handler) SetHeartbeat(d time.Duration) { h.live.beat = d }

// SetBodyMemory sets the memory budget of later bodies.
func (h *Handler) SetBodyMemory(small, large int64) { h.api.bodies.budget = bodies.New(small, large) }

// FreeBodyMemory returns the free part of the budget for small bodies.
func (h *Handler) FreeBodyMemory() int64 {
	small, _ := h.api.bodies.budget.Left()
	return small
}

// PermissionState returns the state of a permission.
var PermissionState = permissionState

// unserved returns an API with every operation, which only parses bodies.
var unserved = sync.OnceValue(func() *api {
	a, err := newAPI(&Options{}, nil, nil, &routes{mux: http.NewServeMux()}, nil, nil, nil, &grantPages{})
	if err != nil {
		panic(err)
	}
	return a
})

// Decisions parses a list of decisions and returns their IDs.
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

// Places returns the JSON pointers of the values that a permission can fix.
func Places(args []byte) (pointers []string) {
	for _, l := range scalarValues(args) {
		pointers = append(pointers, l.Pointer)
	}
	return pointers
}

// Vault is the store of console keys.
type Vault struct{ v *vault }

// NewVault returns an empty vault.
func NewVault(now func() time.Time, lifetime time.Duration) Vault {
	return Vault{newVault(now, lifetime)}
}

// Put stores a key.
func (v Vault) Put(person, cookie, key string) {
	v.v.put(schema.PrincipalID{Name: person}, cookie, key)
}

// Get returns a key.
func (v Vault) Get(cookie string) string { return v.v.get(cookie) }

// Dump returns the content of the memory.
func (v Vault) Dump() string {
	var b strings.Builder
	for place, s := range v.v.by {
		b.Write(place[:])
		b.Write(s.text)
	}
	return b.String()
}
