package urls_test

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	"github.com/callyard/callyard/internal/kit/urls"
)

func TestANameIsOneSegmentOfAPath(t *testing.T) {
	for _, name := range []string{".", "..", "...", "a/b", "a?b#c%", "ä"} {
		u, err := url.Parse("http://host/a/" + urls.Segment(name) + "/b")
		if err != nil {
			t.Fatal(err)
		}
		if got := u.ResolveReference(&url.URL{}); got.Path != "/a/"+name+"/b" {
			t.Errorf("%q became %q", name, got.Path)
		}
	}
}

func TestAnErrorDoesNotRepeatTheURL(t *testing.T) {
	cause := errors.New("refused")
	for _, err := range []error{cause, &url.Error{Op: "Get", URL: "http://host/?key=secret", Err: cause}, fmt.Errorf("asking: %w", &url.Error{URL: "http://host/?key=secret", Err: cause})} {
		if got := urls.WithoutURL(err); got != cause {
			t.Errorf("%v", got)
		}
	}
}

func TestSecretsGoToHTTPSOrThisMachineOnly(t *testing.T) {
	for address, secure := range map[string]bool{
		"https://host/a?b=c": true, "http://127.0.0.1:8080": true, "http://[::1]/a": true, "http://LOCALHOST:1": true,
		"http://host": false, "http://localhost.example.com": false, "ftp://127.0.0.1": false, "https://": false, "https://user@host": false, "https://host#part": false, "host": false, "": false,
	} {
		if u, ok := urls.Secure(address); ok != secure || ok && u.String() != address {
			t.Errorf("%q: %v %v", address, u, ok)
		}
	}
}
