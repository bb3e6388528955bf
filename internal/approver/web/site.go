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

// site is what all pages share: templates, navigation, forms and errors. It is safe for
// concurrent use.
type site struct {
	o      *Options
	access *access
	bodies *bodyReader
	routes *routes
	keys   *vault // the keys of people for the console
	pages  *ui.Pages
}

func newSite(o *Options, a *access, b *bodyReader, r *routes) *site {
	return &site{o: o, access: a, bodies: b, routes: r, keys: newVault(o.Now, o.Lifetime), pages: newPages()}
}

// view is what a page tells the frame around it.
type view struct {
	Title string
	Here  string // the path in the navigation
	Go    string // where to continue at once; empty: nowhere
	Live  string // what the script does on a change: "list", "page" or nothing
	Self  string // the address of the page, where it answers a form
	Page  any
}

// html registers a page; its errors are shown as one.
func (s *site) html(route string, f func(http.ResponseWriter, *http.Request) error) {
	s.routes.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) { s.page(w, r, f) })
}

// visited registers a page for visitors who are known; others are asked to sign in. Of a
// form that is sent to it, f finds the fields in r.PostForm.
func (s *site) visited(route string, f func(w http.ResponseWriter, r *http.Request, v visitor) error) {
	s.html(route, s.known(f))
}

// restored is visited for a form that is given back with what was entered if it is sent
// under another session than that of its page: expired then shows it, and changes nothing.
func (s *site) restored(route string, f, expired func(w http.ResponseWriter, r *http.Request, v visitor) error) {
	s.html(route, s.knownOr(f, expired))
}

func (s *site) known(f func(w http.ResponseWriter, r *http.Request, v visitor) error) func(http.ResponseWriter, *http.Request) error {
	return s.knownOr(f, nil)
}

// knownOr is known with what answers a form of another session; nil: an error does.
func (s *site) knownOr(f, expired func(w http.ResponseWriter, r *http.Request, v visitor) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		v, ok, err := s.enter(w, r)
		if r.Method != http.MethodPost {
			if !ok || err != nil {
				return err
			}
			return f(w, r, v)
		}
		// What was entered is read without a session as well, to give it back.
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

// page answers with a page, or with its error as one.
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

// navigate puts the navigation of the approver's pages into a frame.
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

// write answers with a page in its frame.
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
	_, _ = w.Write(b.Bytes()) // the browser went away; nobody is left to be told
	return nil
}

// message is a page that says one thing.
type message struct {
	Text    string
	Faults  []schema.Fault
	To      string // where a link leads; empty: to the list
	Label   string
	NewTab  bool    // the link opens next to this page
	Entered []entry // what somebody typed into the form that failed
	// Again is where the form can be sent once more, with its Fields; empty: nowhere.
	Again  string
	Fields []entry
}

func (s *site) showError(w http.ResponseWriter, r *http.Request, err error) {
	d := problem.Of(err)
	v := visitor{cookie: s.access.cookie(r)} // no new cookie with an error
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

// showMessage shows a message in the navigation of the page that it is about.
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

// enter finds out who looks; false when the answer is given already: a request to
// sign in.
func (s *site) enter(w http.ResponseWriter, r *http.Request) (visitor, bool, error) {
	if s.arriving(r) {
		return visitor{}, false, s.showArrival(w, r)
	}
	v := s.access.visit(w, r)
	if v.known {
		return v, true, nil
	}
	to := r.URL.Path
	switch inConsole := ofConsole(to); {
	case to == authserver.AuthorizePath && r.Method != http.MethodPost:
		var ok bool
		if to, ok = nextOfAuthorize(r.URL); !ok {
			return v, false, schema.Errorf(schema.KindUnauthenticated, "The program that sent you here made a long request, which cannot wait for a sign-in. Sign in, and start again in the program.")
		}
	case inConsole && r.Method == http.MethodPost:
		return v, false, schema.Errorf(schema.KindUnauthenticated, "Your session has ended; nothing was done. Sign in and try again.")
	case inConsole:
		to = nextOfConsole(r.URL)
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

// showArrival leads on to the same page. A link of another site led here, so the
// browser kept the cookie back; from a page of ours it sends it.
func (s *site) showArrival(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	q.Set("arrived", "1")
	to := r.URL.Path + "?" + q.Encode()
	page := view{Title: "Please wait", Go: to, Page: message{Text: "You followed a link from another site.", To: to, Label: "Continue"}}
	return s.render(w, http.StatusOK, "message", visitor{}, page)
}

// form reads the fields of a form and checks that it is ours.
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
	// A browser may write each byte as three.
	body, err := s.bodies.read(w, r, 3*s.o.ArgumentBytes+maxEnvelope, "The form exceeds the limit of %d bytes for arguments; shorten them, or ask the operator to raise argument_bytes.", s.o.ArgumentBytes)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, io.NopCloser(bytes.NewReader(body)), int64(len(body))) // or 10 MB were the most
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
