package console

import (
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callyard/callyard/internal/kit/limiters"
	"github.com/callyard/callyard/internal/kit/ui"
	"github.com/callyard/callyard/pkg/schema"
)

// Root is the path of the first page; all others are below it.
const Root = "/console"

// Options configures a console. FrontDoor and Log are required.
type Options struct {
	// FrontDoor returns the address of the front door, without a path. The console calls it for
	// each request, because a front door in the same process may start later.
	FrontDoor func() string
	// Transport sends the requests to the front door. If nil, the console creates its own, which
	// [Console.Close] closes.
	Transport http.RoundTripper
	// Environments is the address of a callyard env. If empty, the console has no pages of
	// environments.
	Environments string
	// TraceURL is the address of a trace, with the placeholder {trace_id}. If empty, trace IDs
	// are not links.
	TraceURL string
	// ArgumentBytes limits the size of the arguments of a call, in bytes.
	ArgumentBytes int
	Log           *slog.Logger
	// Now returns the current time. If nil, time.Now is used.
	Now func() time.Time
}

// Visit is one request of a user who may see the console.
type Visit struct {
	// Person is the name of the user, for the log.
	Person string
	// Key is the user's API key at the front door, or "" if the user has not given one.
	Key string
	// Keep stores another key for this user until the session ends. An empty key removes it.
	Keep func(key string)
	// Token returns the form token for a form that is submitted to path.
	Token func(path string) string
	// Write writes a page in its frame. It fills in the navigation and the user.
	Write func(w http.ResponseWriter, status int, t *template.Template, f ui.Frame) error
}

// Route is a page, or the target of a form. The form fields are in r.PostForm.
type Route struct {
	Pattern string // "METHOD /path"
	Serve   func(w http.ResponseWriter, r *http.Request, v Visit) error
}

// Console serves the pages. It is safe for concurrent use.
type Console struct {
	o     Options
	pages *ui.Pages
	cache *cache
	meter *meter

	viewers *limiters.Slots[string] // by person
	closed  chan struct{}
	once    sync.Once
	own     *http.Transport // nil if the caller provided a transport
}

// New returns a console. It starts no goroutines. [Console.Close] ends the event streams of its
// pages.
func New(o Options) (*Console, error) {
	if o.FrontDoor == nil || o.Log == nil {
		return nil, errors.New("console: FrontDoor and Log are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Console{o: o, cache: newCache(o.Now), meter: &meter{}, viewers: limiters.NewSlots[string](maxViewers, maxViewersEach), closed: make(chan struct{})}
	if o.Transport == nil {
		c.own = &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second, ResponseHeaderTimeout: 30 * time.Second}
		c.o.Transport = c.own
	}
	c.pages = newPages()
	return c, nil
}

// Close ends all event streams and refuses new ones. It does not wait for them; the HTTP server
// that serves the pages does.
func (c *Console) Close() {
	c.once.Do(func() {
		close(c.closed)
		if c.own != nil {
			c.own.CloseIdleConnections()
		}
	})
}

// Routes returns all routes of the console.
func (c *Console) Routes() []Route {
	routes := []Route{
		{"GET " + Root, c.overview},
		{"GET " + Root + "/key", c.askKey},
		{"POST " + Root + "/key", c.takeKey},
		{"GET " + Root + "/events", c.events},
		{"GET " + Root + "/servers", c.serverList},
		{"GET " + Root + "/server", c.server},
		{"POST " + Root + "/server/restart", c.restart},
		{"POST " + Root + "/fleet/drain", fleetPages{c}.drain},
		{"POST " + Root + "/server/accept", c.accept},
		{"POST " + Root + "/server/switch", switchPages{c}.switchServer},
		{"GET " + Root + "/fleet", fleetPages{c}.fleet},
		{"GET " + Root + "/tools", toolPages{c}.tools},
		{"GET " + Root + "/tool", toolPages{c}.tool},
		{"POST " + Root + "/tool", toolPages{c}.tryTool},
		{"POST " + Root + "/tool/switch", toolPages{c}.switchTool},
		{"GET " + Root + "/calls", callPages{c}.calls},
		{"GET " + Root + "/call", callPages{c}.call},
		{"POST " + Root + "/call", callPages{c}.actOnCall},
		{"GET " + Root + "/batches", callPages{c}.batches},
		{"GET " + Root + "/batch", callPages{c}.batch},
		{"POST " + Root + "/batch", callPages{c}.actOnBatch},
		{"GET " + Root + "/batch/results", callPages{c}.results},
		{"GET " + Root + "/policy", policyPages{c}.policy},
		{"POST " + Root + "/policy", policyPages{c}.tryDraft},
		{"GET " + Root + "/sets", c.setList},
		{"GET " + keysPath, keyPages{c}.list},
		{"GET " + newKeyPath, keyPages{c}.ask},
		{"POST " + newKeyPath, keyPages{c}.create},
		{"GET " + oneKeyPath, keyPages{c}.show},
		{"POST " + oneKeyPath, keyPages{c}.act},
		{"GET " + auditPath, c.audit},
		{"GET " + tenantsPath, tenantPages{c}.list},
		{"GET " + tenantPath, tenantPages{c}.one},
		{"GET " + usagePath, c.usage},
		{"GET " + usageFilePath, c.usageFile},
		{"GET " + statePath, c.state},
		{"POST " + statePath, c.importState},
		{"GET " + evaluationsPath, evaluationPages{c}.list},
		{"GET " + reportPath, evaluationPages{c}.report},
		{"GET " + exportPath, c.exportState},
	}
	if c.o.Environments != "" {
		routes = append(routes, Route{"GET " + environmentsPath, environmentPages{c}.list}, Route{"GET " + environmentPath, environmentPages{c}.one})
	}
	return routes
}

// Links returns the navigation of the console. here is the path of the current page: that of a
// section, or of a page within one.
func (c *Console) Links(here string) []ui.Link {
	links := []ui.Link{
		{To: Root, Label: "Overview"}, {To: Root + "/servers", Label: "Servers"}, {To: Root + "/fleet", Label: "Fleet"}, {To: Root + "/tools", Label: "Tools"},
		{To: Root + "/calls", Label: "Calls"}, {To: Root + "/batches", Label: "Batches"}, {To: Root + "/policy", Label: "Policy"}, {To: Root + "/sets", Label: "Sets"},
		{To: keysPath, Label: "Keys"}, {To: tenantsPath, Label: "Tenants"}, {To: usagePath, Label: "Usage"}, {To: auditPath, Label: "Audit"}, {To: statePath, Label: "State"},
		{To: evaluationsPath, Label: "Evaluations"},
	}
	if c.o.Environments != "" {
		links = append(links, ui.Link{To: environmentsPath, Label: "Environments"})
	}
	for i := range links {
		links[i].Current = links[i].To == here
	}
	if slices.ContainsFunc(links, func(l ui.Link) bool { return l.Current }) {
		return links
	}
	for i, l := range links { // a detail page: "/console/server" is within "/console/servers"
		within := l.To != Root && strings.HasPrefix(here, l.To+"/")
		links[i].Current = within || strings.TrimSuffix(l.To, "s") == here || strings.TrimSuffix(l.To, "es") == here
	}
	return links
}

// view holds the properties of a page that its frame needs.
type view struct {
	Title string
	Here  string // the path of its section in the navigation
	Live  bool   // the page updates itself
	Page  any
}

func (c *Console) render(w http.ResponseWriter, v Visit, status int, name string, p view) error {
	f := ui.Frame{Title: p.Title, Nav: c.Links(p.Here), Styles: []string{"/static/console.css"}, Scripts: []string{"/static/console.js"}, Page: p.Page}
	if p.Live {
		f.Live, f.Stream = "parts", Root+"/events"
	}
	t, err := c.pages.Page(name)
	if err != nil {
		return schema.Errorf(schema.KindInternal, "The page cannot be shown: %w", err)
	}
	return v.Write(w, status, t, f)
}
