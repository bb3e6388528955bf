package callyard

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// signIn is a proxy that redirects every request without a session to its sign-in page.
func signIn(t *testing.T) *ClientWithResponses {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/login" {
			http.Redirect(w, r, "/login", http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!doctype html><title>Sign in</title>")
	}))
	t.Cleanup(proxy.Close)
	client, err := New(proxy.URL, "key")
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestASignInPageOfAProxyIsAProblem(t *testing.T) {
	client := signIn(t)
	ctx := t.Context()
	for name, do := range map[string]func() error{
		"call": func() error {
			_, err := client.Call(ctx, "demo", "echo", nil)
			return err
		},
		"wait": func() error {
			_, err := client.Wait(ctx, "call_1")
			return err
		},
		"check": func() error {
			answer, err := client.ListServersWithResponse(ctx)
			if err != nil {
				return err
			}
			return Check(answer.HTTPResponse, answer.Body)
		},
		"page": func() error {
			answer, err := client.GetEvaluationPageWithResponse(ctx, "run")
			if err != nil {
				return err
			}
			return Check(answer.HTTPResponse, answer.Body)
		},
		"lines": func() (err error) {
			for _, err = range Lines[BatchResult](client.GetBatchResults(ctx, "batch_1", nil)) {
				break
			}
			return err
		},
		"events": func() (err error) {
			for _, err = range Events(client.GetEvents(ctx, nil)) {
				break
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := do()
			var refused *ProblemError
			if !errors.As(err, &refused) || refused.Problem.Status != http.StatusOK || !strings.Contains(err.Error(), "answered with status 200 and an HTML page") {
				t.Errorf("%T %v", err, err)
			}
		})
	}
}

func TestThePageOfAnEvaluationIsNoProblem(t *testing.T) {
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!doctype html><title>Report</title>")
	}))
	defer front.Close()
	client, err := New(front.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.GetEvaluationPageWithResponse(t.Context(), "a/page")
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(answer.HTTPResponse, answer.Body); err != nil {
		t.Error(err)
	}
}

func TestAProblemNamesTheLocationOfEachFault(t *testing.T) {
	a, limit, whole := "/a", "limit", ""
	e := &ProblemError{Problem: Problem{Detail: "Three faults.", Errors: []ProblemFault{
		{Pointer: &a, Message: "expected a number"}, {Parameter: &limit, Message: "at most 10"}, {Pointer: &whole, Message: "expected property b"},
	}}}
	if got, want := e.Error(), "Three faults. [/a: expected a number] [limit: at most 10] [whole document: expected property b]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
