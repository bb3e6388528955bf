package bench

import (
	"strings"
	"testing"
	"time"
)

func TestQuickSetsOnlyUnsetOptions(t *testing.T) {
	o := Options{Quick: true, Rounds: 5}.filled()
	if o.Rounds != 5 || o.Duration != 700*time.Millisecond || len(o.C) != 2 || o.Log == nil {
		t.Errorf("got %+v", o)
	}
	if o := (Options{}).filled(); o.Rounds != 3 || len(o.C) != 4 || len(o.Sizes) != 3 {
		t.Errorf("the full run is %+v", o)
	}
}

func TestInvalidOptionsAreRefusedBeforeStart(t *testing.T) {
	for want, o := range map[string]Options{
		`no target "nobody"`:            {Only: []string{"nobody"}},
		"has no name":                   {URLs: []string{"http://127.0.0.1/x=y"}},
		"two targets":                   {URLs: []string{AllInOne + "=http://127.0.0.1/"}},
		"not an http":                   {URLs: []string{"peer=127.0.0.1:80"}},
		"cannot have 10 bytes":          {Sizes: []int{10}},
		"name the server and the tool":  {URL: "http://127.0.0.1"},
		"arguments are not a JSON obje": {URL: "http://127.0.0.1", Server: "a", Tool: "b", Arguments: []byte("[]")},
	} {
		var out, progress strings.Builder
		err := Main(t.Context(), o, &out, &progress)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
		if progress.Len() > 0 {
			t.Errorf("%q: something was done: %s", want, progress.String())
		}
	}
	err := Main(t.Context(), Options{URLs: []string{"http://h/?key=secret-word"}}, &strings.Builder{}, &strings.Builder{})
	if err == nil || strings.Contains(err.Error(), "secret-word") {
		t.Errorf("got %v", err)
	}
}

func TestTheEndpointOfAToolIsUnderTheURLOfCallyard(t *testing.T) {
	e, err := Options{URL: "http://127.0.0.1:8080/base/", Server: "a b", Tool: "c/d"}.endpoint()
	if err != nil {
		t.Fatal(err)
	}
	if got := e.url.RequestURI(); got != "/base/servers/a%20b/tools/c%2Fd" {
		t.Errorf("got %s", got)
	}
	if string(e.fixed) != "{}" {
		t.Errorf("no arguments became %q", e.fixed)
	}
}
