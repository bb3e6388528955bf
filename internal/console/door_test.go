package console_test

import (
	"bytes"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/console"
	"github.com/callyard/callyard/internal/kit/ui"
	"github.com/callyard/callyard/internal/problem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// door is a front door with canned responses.
type door struct {
	t       *testing.T
	mu      sync.Mutex
	answers map[string]string // by "METHOD /path", with the query if given
	key     string            // the only valid key; if empty, no key is required
	asked   []request
	url     string
}

// request is a request to the front door.
type request struct {
	route, query, body, key string
	header                  http.Header
}

func openDoor(t *testing.T, answers map[string]string) *door {
	t.Helper()
	d := &door{t: t, answers: answers}
	s := httptest.NewServer(d)
	t.Cleanup(s.Close)
	d.url = s.URL
	return d
}

// ServeHTTP writes the canned response.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	d.mu.Lock()
	defer d.mu.Unlock()
	route := r.Method + " " + r.URL.EscapedPath()
	d.asked = append(d.asked, request{route, r.URL.RawQuery, string(body), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Header})
	refuse := func(status int, kind, detail string) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"type":"/problems/`+kind+`","title":"x","status":0,"detail":"`+detail+`","error":"","retryable":false}`)
	}
	if d.key != "" && r.Header.Get("Authorization") != "Bearer "+d.key {
		refuse(http.StatusUnauthorized, "unauthenticated", "The API key is unknown.")
		return
	}
	answer, ok := d.answers[route+"?"+r.URL.RawQuery]
	if !ok {
		answer, ok = d.answers[route]
	}
	status, rest, isRefusal := strings.Cut(answer, "!")
	switch {
	case !ok:
		refuse(http.StatusNotFound, "not-found", "There is no such thing.")
	case isRefusal && len(status) == 0:
		kind, detail, _ := strings.Cut(rest, " ")
		refuse(problem.Status(kindNamed(kind)), kind, detail)
	default:
		if strings.HasPrefix(answer, "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		_, _ = io.WriteString(w, answer)
	}
}

// set changes the response of a route. Requests of an earlier page may still be in flight.
func (d *door) set(route, answer string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[route] = answer
}

// require makes key the only valid key.
func (d *door) require(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.key = key
}

// last returns the last request of a route.
func (d *door) last(route string) request {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := len(d.asked) - 1; i >= 0; i-- {
		if d.asked[i].route == route {
			return d.asked[i]
		}
	}
	d.t.Fatalf("the front door was not asked for %s", route)
	return request{}
}

// testConsole is a console in front of a door, and its user.
type testConsole struct {
	t   *testing.T
	c   *console.Console
	mux *http.ServeMux
	mu  sync.Mutex
	key string
}

func openDesk(t *testing.T, d *door, change func(*console.Options)) *testConsole {
	t.Helper()
	o := console.Options{FrontDoor: func() string { return d.url }, ArgumentBytes: 1 << 20, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	c, err := console.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	k := &testConsole{t: t, c: c, mux: http.NewServeMux()}
	for _, route := range c.Routes() {
		k.mux.HandleFunc(route.Pattern, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				if err := r.ParseForm(); err != nil || r.PostForm.Get("token") != "token of "+r.URL.Path {
					t.Errorf("%s: %v, the token is %q", r.URL.Path, err, r.PostForm.Get("token"))
				}
			}
			if err := route.Serve(w, r, k.visit()); err != nil {
				problem.Write(w, err)
			}
		})
	}
	return k
}

func (k *testConsole) visit() console.Visit {
	k.mu.Lock()
	defer k.mu.Unlock()
	return console.Visit{
		Person: "ada", Key: k.key,
		Keep: func(key string) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.key = key
		},
		Token: func(path string) string { return "token of " + path },
		Write: func(w http.ResponseWriter, status int, t *template.Template, f ui.Frame) error {
			var b bytes.Buffer
			if err := t.Execute(&b, f); err != nil {
				return err
			}
			w.WriteHeader(status)
			_, _ = w.Write(b.Bytes())
			return nil
		},
	}
}

// doneToken returns the value of done in the address of a page that confirms an act.
func doneToken(act string) string { return url.QueryEscape(act + ".token of done " + act) }

// page is a response of the console.
type page struct {
	status int
	header http.Header
	body   string
}

func (k *testConsole) get(path string) page {
	k.t.Helper()
	return k.do(httptest.NewRequestWithContext(k.t.Context(), http.MethodGet, path, http.NoBody))
}

// post submits a form, given as pairs of names and values.
func (k *testConsole) post(path string, pairs ...string) page {
	k.t.Helper()
	form := url.Values{"token": {"token of " + path}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	r := httptest.NewRequestWithContext(k.t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return k.do(r)
}

func (k *testConsole) do(r *http.Request) page {
	k.t.Helper()
	w := httptest.NewRecorder()
	k.mux.ServeHTTP(w, r)
	return page{w.Code, w.Header(), w.Body.String()}
}

// has fails unless the page contains each text.
func (p page) has(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			t.Errorf("the page does not have %q:\n%s", text, p.body)
		}
	}
}

// hasNot fails if the page contains one of the texts.
func (p page) hasNot(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(p.body, text) {
			t.Errorf("the page has %q:\n%s", text, p.body)
		}
	}
}
