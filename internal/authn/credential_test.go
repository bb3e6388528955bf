package authn

import (
	"net/http"
	"testing"
)

// A front door without keys asks for the credential of each call.
func TestRequestWithoutCredentialDoesNotAllocate(t *testing.T) {
	h := http.Header{"Accept": {"application/json"}}
	if n := testing.AllocsPerRun(100, func() { _, _, _ = Credential(h) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if _, _, err := Credential(h); err == nil {
		t.Error("there is no error")
	}
}
