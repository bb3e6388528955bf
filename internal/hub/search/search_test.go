package search

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "key-4c1d"

// fake is an engine that records what it is asked.
type fake struct {
	status   int
	answer   string
	location string
	asked    *http.Request
	body     string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	f.asked, f.body = r, string(b)
	if f.location != "" {
		w.Header().Set("Location", f.location)
	}
	w.WriteHeader(f.status)
	fmt.Fprint(w, f.answer)
}

func start(t *testing.T, name string, f *fake) *server {
	t.Helper()
	web := httptest.NewServer(f)
	t.Cleanup(web.Close)
	s := Settings{Engine: name, URL: web.URL + "/", Agent: "test"}
	if name != "searxng" {
		s.APIKey = key
	}
	n, err := newServer(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEveryEngineReturnsTheSameResultFormat(t *testing.T) {
	for name, c := range map[string]struct{ answer, path, header, body string }{
		"searxng": {`{"query":"x","results":[%s]}`, "/search?format=json&q=go+%26+nats", "", ""},
		"brave":   {`{"type":"search","web":{"results":[%s]}}`, "/res/v1/web/search?count=2&q=go+%26+nats", "X-Subscription-Token: " + key, ""},
		"tavily":  {`{"results":[%s]}`, "/search", "Authorization: Bearer " + key, `{"max_results":2,"query":"go \u0026 nats"}`},
		"serper":  {`{"organic":[%s]}`, "/search", "X-Api-Key: " + key, `{"num":2,"q":"go \u0026 nats"}`},
	} {
		one := `{"title":"A <strong>title</strong> &amp; more","url":"https://a.example/","link":"https://a.example/","content":"part\n one","description":"part\n one","snippet":"part\n one"}`
		f := &fake{status: 200, answer: fmt.Sprintf(c.answer, one+`,{"title":"bad","url":"javascript:x","link":"javascript:x"},`+one+","+one)}
		got, err := start(t, name, f).search(t.Context(), nil, arguments{Query: " go & nats ", Count: 2})
		if err != nil || len(got.Results) != 2 || got.Results[0] != (result{"A title & more", "https://a.example/", "part one"}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if f.asked.URL.String() != c.path || f.body != c.body {
			t.Errorf("%s is asked %s with %s", name, f.asked.URL, f.body)
		}
		if h, v, ok := strings.Cut(c.header, ": "); ok && f.asked.Header.Get(h) != v {
			t.Errorf("%s: %v", name, f.asked.Header)
		}
	}
}

func TestErrorsNameTheFaultAndNeverTheKey(t *testing.T) {
	elsewhere := &fake{status: 200, answer: "{}"}
	other := httptest.NewServer(elsewhere)
	defer other.Close()
	for _, c := range []struct {
		engine string
		f      fake
		want   string
	}{
		{"brave", fake{status: 401}, "refuses the key (status 401); check the setting api_key"},
		{"searxng", fake{status: 403}, "add json to search.formats"},
		{"serper", fake{status: 429}, "try again later"},
		{"tavily", fake{status: 500, answer: key}, "answers with the status 500"},
		{"brave", fake{status: 302, location: other.URL}, "a redirect is not followed; set engine_url"},
		{"searxng", fake{status: 200, answer: "<html>"}, "not in its format; check the setting engine_url"},
		{"searxng", fake{status: 200, answer: strings.Repeat("x", maxAnswer+1)}, "has more than 2097152 bytes"},
	} {
		_, err := start(t, c.engine, &c.f).search(t.Context(), nil, arguments{Query: "x"})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v, want %q", c.engine, err, c.want)
		}
	}
	if elsewhere.asked != nil {
		t.Error("the redirect is followed")
	}
	s := start(t, "brave", &fake{status: 200})
	for want, in := range map[string]arguments{"is empty": {Query: " "}, "at most 1000 bytes": {Query: strings.Repeat("x", 1001)}, "count must be": {Query: "x", Count: -1}} {
		if _, err := s.search(t.Context(), nil, in); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
	gone, err := newServer(Settings{Engine: "brave", URL: "http://127.0.0.1:1", APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gone.search(t.Context(), nil, arguments{Query: "secret words"}); err == nil || !strings.Contains(err.Error(), "Brave cannot be reached") || strings.Contains(err.Error(), "words") || strings.Contains(err.Error(), key) {
		t.Error(err)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	var many []result
	for i := range 300 {
		many = append(many, result{strings.Repeat("é", 1000), fmt.Sprintf("https://a.example/%d", i), strings.Repeat("x ", 400)})
	}
	many[0].URL += strings.Repeat("x", maxURL)
	b, err := json.Marshal(results{many})
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{status: 200, answer: strings.ReplaceAll(string(b), `"url"`, `"URL"`)}
	s := start(t, "searxng", f)
	got, err := s.search(t.Context(), nil, arguments{Query: "x", Count: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Results) != maxCount || got.Results[0].URL != "https://a.example/1" || len(got.Results[0].Title) != maxTitle || len(got.Results[0].Content) > maxSnippet {
		t.Errorf("%d results, the first %+v", len(got.Results), got.Results[0])
	}
	if got, err := s.search(t.Context(), nil, arguments{Query: "x"}); err != nil || len(got.Results) != 5 {
		t.Error(len(got.Results), err)
	}
}

func TestSettingsThatDoNotFitTheEngineAreNamed(t *testing.T) {
	for want, s := range map[string]Settings{
		"no engine \"bing\"; set engine to searxng, brave": {Engine: "bing"},
		"needs the setting api_key":                        {Engine: "brave"},
		"needs the setting engine_url":                     {Engine: "searxng"},
		"has no api_key; remove it":                        {Engine: "searxng", URL: "http://x", APIKey: "x"},
		"engine_url is not the address":                    {Engine: "searxng", URL: "searx.example.com"},
		"without a password or a query":                    {Engine: "searxng", URL: "https://a:b@x/"},
		"has a line break":                                 {Engine: "tavily", APIKey: "x\nHost: y"},
	} {
		if _, err := Tools(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}
