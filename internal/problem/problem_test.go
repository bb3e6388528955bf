package problem_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProblemDocumentNamesTheKindAndTheFix(t *testing.T) {
	e := schema.Errorf(schema.KindInvalidArguments, "The arguments do not fit.").WithCall("call_1")
	e.Faults = []schema.Fault{{Pointer: "/a<b", Message: "expected a number"}}
	w := httptest.NewRecorder()
	problem.Write(w, e)
	want := `{"type":"/problems/invalid-arguments","title":"The arguments do not match the tool's schema","status":422,` +
		`"detail":"The arguments do not fit.","error":"The arguments do not fit.","call_id":"call_1","retryable":false,` +
		`"errors":[{"pointer":"/a<b","message":"expected a number"}]}` + "\n"
	if diff := cmp.Diff(want, w.Body.String()); diff != "" {
		t.Error(diff)
	}
	if w.Code != http.StatusUnprocessableEntity || w.Header().Get("Content-Type") != problem.MediaType || w.Header().Get("Callyard-Call-Id") != "call_1" {
		t.Error(w.Code, w.Header())
	}
}

func TestInternalCauseIsNotShownToTheCaller(t *testing.T) {
	for _, err := range []error{errors.New("secret"), &schema.Error{Kind: "new-kind", Detail: "Something."}} {
		w := httptest.NewRecorder()
		problem.Write(w, err)
		if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "secret") || !strings.Contains(w.Body.String(), "/problems/internal") {
			t.Errorf("%v: %d %s", err, w.Code, w.Body)
		}
	}
}

func TestRetryAfterIsRoundedUpToWholeSeconds(t *testing.T) {
	for _, c := range []struct {
		kind  schema.Kind
		after time.Duration
		want  string
	}{
		{schema.KindUnavailable, 0, "1"}, {schema.KindQuota, 1500 * time.Millisecond, "2"}, {schema.KindConflict, 0, ""},
	} {
		w := httptest.NewRecorder()
		problem.Write(w, &schema.Error{Kind: c.kind, RetryAfter: c.after})
		if got := w.Header().Get("Retry-After"); got != c.want {
			t.Errorf("%s: %q", c.kind, got)
		}
	}
}

func TestHTTPStatusOfEveryKind(t *testing.T) {
	for kind, want := range map[schema.Kind]int{
		schema.KindInvalidRequest: 400, schema.KindUnauthenticated: 401, schema.KindForbidden: 403, schema.KindDisabled: 403,
		schema.KindNotFound: 404, problem.KindMethod: 405, schema.KindConflict: 409, schema.KindInputRequired: 409, schema.KindExpired: 410,
		schema.KindTooLarge: 413, problem.KindMediaType: 415, schema.KindInvalidArguments: 422, schema.KindQuota: 429, schema.KindCanceled: 499,
		schema.KindInternal: 500, schema.KindServerFailed: 502, schema.KindProtocol: 502, schema.KindResultTooLarge: 502,
		schema.KindUnavailable: 503, schema.KindOutcomeUnknown: 504,
	} {
		if got := problem.Status(kind); got != want {
			t.Errorf("%s: %d, want %d", kind, got, want)
		}
	}
}
