package web

import (
	"bytes"
	"cmp"
	"html/template"
	"io"
	"mime"
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/authserver"
	"github.com/callyard/callyard/internal/console"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/kit/ui"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// site holds the shared parts of all pages: templates, navigation, forms and errors. It is safe for
// concurrent use.
type site struct {
	o      *Options
	access *access
	bodies *bodyReader
	routes *routes
	keys   *vault // the keys that people entered for the console
	pages  *ui.Pages
}

func newSite(o *Options, a *access, b *bodyReader, r *routes) *site {
	return &site{o: o, access: a, bodies: b, routes: r, keys: newVault(o.Now, o.Lifetime), pages: newPages()}
}

// view holds the properties of a page that its frame needs.
type view struct {
	Title string
	Here  string // the path in the navigation
	Go    string // the target of an immediate redirect, or ""
	Live  string // the script's reaction to a change: "list", "page" or ""
	Self  string // the address of the page, if it is the response to a form
	Page  any
}

// html registers a page. Its errors are shown as pages.
func (s *site) html(route string, f func(http.ResponseWriter, *http.Request) error) {
	s.routes.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) { s.page(w, r, f) })
}

// visited registers a page for signed-in visitors. Others are asked to sign in. If it is the target
// of a form, f finds the fields in r.PostForm.
func (s *site) visited(route string, f func(w http.ResponseWriter, r *http.Request, v visitor) error) {
	s.html(route, s.known(f))
}

// restored is like visited, for a form that is shown again with its input if it is submitted in
// another session than that of its page. expired then shows it, and must change nothing.
func (s *site) restored(route string, f, expired func(w http.ResponseWriter, r *http.Request, v visitor) error) {
	s.html(route, s.knownOr(f, expired))
}

func (s *site) known(f func(w http.ResponseWriter, r *http.Request, v visitor) error) func(http.ResponseWriter, *http.Request) error {
	return s.knownOr(f, nil)
}

// knownOr is like known. expired responds to a form of another session; if nil, the response is an
// error.
func (s *site) knownOr(f, expired func(w http.ResponseWriter, r *http.Request, v visitor) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		v, ok, err := s.enter(w, r)
		if r.Method != http.MethodPost {
			if !ok || err != nil {
				return err
			}
			return f(w, r, v)
		}
		// Read the input even without a session, to show it again.
		formErr := s.readForm(w, r)
		switch {
		case err != nil && formErr == nil:
			return s.showEnded(w, r, v, err, expired != nil)
		case err != nil || formErr != nil:
			return cmp.Or(err, formErr)
		}
		if err := s.access.checkForm(r); err != nil && expired != nil {
			return expired(w, r, v)
		} else if err != nil {
			return err
		}
		return f(w, r, v)
	}
}

// page writes a page, or its error as a page.
func (s *site) page(w http.ResponseWriter, r *http.Request, f func(http.ResponseWriter, *http.Request) error) {
	if err := f(w, r); err != nil {
		s.o.fault(r.Context(), r.Pattern, err)
		s.showError(w, r, err)
	}
}

func (s *site) render(w http.ResponseWriter, status int, name string, v visitor, page view) error {
	frame := ui.Frame{Title: page.Title, Go: page.Go, Live: page.Live, Self: page.Self, Styles: []string{"/static/approver.css"}, Page: page.Page}
	s.navigate(&frame, v, page.Here)
	t, err := s.pages.Page(name)
	if err != nil {
		return schema.Errorf(schema.KindInternal, "The page cannot be rendered: %w", err)
	}
	return s.write(w, status, t, v, frame)
}

// navigate adds the navigation of the approver's pages to a frame.
func (s *site) navigate(f *ui.Frame, v visitor, here string) {
	f.Brand = "Approvals"
	if !v.known {
		return
	}
	links := []ui.Link{{To: "/", Label: "Pending"}, {To: "/history", Label: "History"}, {To: "/permissions", Label: "Permissions"}}
	if s.o.Slack != nil && !v.local {
		links = append(links, ui.Link{To: "/slack", Label: "Slack"})
	}
	if s.o.Credentials != nil {
		links = append(links, ui.Link{To: credential.ConnectPath, Label: "Connections"})
	}
	if s.o.Authorization != nil {
		links = append(links, ui.Link{To: grantsPath, Label: "Programs"})
	}
	for i := range links {
		links[i].Current = links[i].To == here
	}
	if !s.o.seesConsole(v) {
		f.Nav = links
		return
	}
	f.Brand, f.Nav = "", append(s.o.Console.Links(""), ui.Link{To: "/", Label: "Approvals", Current: true})
	f.Tabs, f.TabsOf = links, "Approvals"
}

// write writes a page in its frame.
func (s *site) write(w http.ResponseWriter, status int, t *template.Template, v visitor, frame ui.Frame) error {
	frame.Now = s.o.Now()
	if v.known {
		frame.Who = personOf(v.who.Name)
		if !v.local {
			frame.SignOut = s.access.formToken(v.cookie, "/sign-out")
		}
	}
	var b bytes.Buffer
	if err := t.Execute(&b, frame); err != nil {
		return schema.Errorf(schema.KindInternal, "The page cannot be rendered: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client disconnected; there is no one to report the error to
	return nil
}

// message is a page with a single message.
type message struct {
	Text    string
	Faults  []schema.Fault
	To      string // the target of the link; empty means the list
	Label   string
	NewTab  bool    // the link opens in a new tab
	Entered []entry // the person's input in the form that failed
	// Again is the address to which the form can be submitted again, with its Fields. If empty, it
	// cannot.
	Again  string
	Fields []entry
}

func (s *site) showError(w http.ResponseWriter, r *http.Request, err error) {
	d := problem.Of(err)
	v := visitor{cookie: s.access.cookie(r)} // an error sets no new cookie
	if v.cookie != "" || s.access.open() {
		v = s.access.visit(w, r)
	}
	to, name := "/", "Back to pending requests"
	if ofConsole(r.URL.Path) && s.o.seesConsole(v) {
		to, name = console.Root, "Back to the overview"
	}
	if back, ok := pageBehind(r); ok {
		to, name = back, "Open the page again"
	}
	page := view{Title: d.Title, Page: message{Text: d.Detail, Faults: schema.AsError(err).Faults, To: to, Label: name, Entered: entered(r)}}
	if renderErr := s.showMessage(w, r, d.Status, v, page); renderErr != nil {
		s.o.fault(r.Context(), r.Pattern, renderErr)
		problem.Write(w, err)
	}
}

// showMessage shows a message within the navigation of the requested page.
func (s *site) showMessage(w http.ResponseWriter, r *http.Request, status int, v visitor, page view) error {
	if !ofConsole(r.URL.Path) || !s.o.seesConsole(v) {
		return s.render(w, status, "message", v, page)
	}
	t, err := s.pages.Page("message")
	if err != nil {
		return schema.Errorf(schema.KindInternal, "The page cannot be rendered: %w", err)
	}
	nav := append(s.o.Console.Links(r.URL.Path), ui.Link{To: "/", Label: "Approvals"})
	return s.write(w, status, t, v, ui.Frame{Title: page.Title, Nav: nav, Styles: []string{"/static/approver.css"}, Page: page.Page})
}

// enter identifies the visitor. It returns false if it has written the response, such as a redirect
// to the sign-in.
func (s *site) enter(w http.ResponseWriter, r *http.Request) (visitor, bool, error) {
	if s.arriving(r) {
		return visitor{}, false, s.showArrival(w, r)
	}
	v := s.access.visit(w, r)
	if v.known {
		return v, true, nil
	}
	to := next(r.URL.RequestURI())
	switch inConsole := ofConsole(r.URL.Path); {
	case r.URL.Path == authserver.AuthorizePath && r.Method != http.MethodPost:
		var ok bool
		if to, ok = nextOfAuthorize(r.URL); !ok {
			return v, false, schema.Errorf(schema.KindUnauthenticated, "The program that sent you here made a long request, which cannot wait for a sign-in. Sign in, and start again in the program.")
		}
	case inConsole && r.Method == http.MethodPost:
		return v, false, schema.Errorf(schema.KindUnauthenticated, "Your session has ended; nothing was done. Sign in and try again.")
	case r.Method == http.MethodPost:
		return v, false, schema.Errorf(schema.KindUnauthenticated, "Your session has ended; no decision was recorded. Sign in and try again.")
	}
	http.Redirect(w, r, "/sign-in?next="+url.QueryEscape(to), http.StatusSeeOther)
	return v, false, nil
}

func (s *site) arriving(r *http.Request) bool {
	return !s.access.open() && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "cross-site" &&
		s.access.cookie(r) == "" && !r.URL.Query().Has("arrived")
}

// showArrival shows a page that continues to the same page. After a link from another site the
// browser withholds the cookie, but from a page of ours it sends it.
func (s *site) showArrival(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	q.Set("arrived", "1")
	to := r.URL.Path + "?" + q.Encode()
	page := view{Title: "Please wait", Go: to, Page: message{Text: "You followed a link from another site.", To: to, Label: "Continue"}}
	return s.render(w, http.StatusOK, "message", visitor{}, page)
}

// form parses the fields of a form and verifies its token.
func (s *site) form(w http.ResponseWriter, r *http.Request) error {
	if err := s.readForm(w, r); err != nil {
		return err
	}
	return s.access.checkForm(r)
}

func (s *site) readForm(w http.ResponseWriter, r *http.Request) error {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/x-www-form-urlencoded" {
		return schema.Errorf(problem.KindMediaType, "This address accepts only forms of the approver's pages.")
	}
	// A browser may encode each byte as three.
	body, err := s.bodies.read(w, r, 3*s.o.ArgumentBytes+maxEnvelope, "The form exceeds the limit of %d bytes for arguments; shorten them, or ask the operator to raise argument_bytes.", s.o.ArgumentBytes)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, io.NopCloser(bytes.NewReader(body)), int64(len(body))) // otherwise the limit would be 10 MB
	if r.ParseForm() != nil {
		return schema.Errorf(schema.KindInvalidRequest, "The form arrived incomplete; submit it again.")
	}
	for name, values := range r.PostForm {
		if len(values) != 1 || !utf8.ValidString(values[0]) {
			return schema.Errorf(schema.KindInvalidRequest, "The form field %.20q appears twice, or is not valid UTF-8.", name)
		}
	}
	return nil
}
