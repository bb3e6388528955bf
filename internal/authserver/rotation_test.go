package authserver_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/authserver"
	"github.com/callyard/callyard/internal/credential"
	"github.com/callyard/callyard/internal/kit/polltest"
)

// TestAnApproverEncryptsGrantsAndSigningKeysWithTheNewestKey rotates the key of an installation, and
// removes the former one.
func TestAnApproverEncryptsGrantsAndSigningKeysWithTheNewestKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	const first, second = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "YWJjZGVmZ2hpamFiY2RlZmdoaWphYmNkZWZnaGlqYWI="
	load := func(lines ...string) *credential.Keys {
		err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		k, err := credential.LoadKeys(file)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	keys := load(first)
	w, s := newInstallation(t, func(o *authserver.Options) { o.Keys, o.DataKeys = keys, nil })
	used := w.login(s)
	code := w.code(s)
	keys = load(second, first)
	newest := keys.Lines()[0].Name
	next := w.open(func(o *authserver.Options) { o.Keys = keys })
	next.ServeKeys(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
	// The grant whose code is not redeemed keeps its key until then.
	w.untilKeys(map[string]int{newest: 2, keys.Lines()[1].Name: 1})
	if a := post(t, next.ServeToken, redemption(code)); a.Error != "" {
		t.Errorf("the code: %+v", a)
	}
	w.untilKeys(map[string]int{newest: 3})
	keys = load(second)
	last := w.open(func(o *authserver.Options) { o.Keys = keys })
	if a := post(t, last.ServeToken, renewal(used.Refresh)); a.Error != "" || a.Access == "" {
		t.Errorf("without the former key: %+v", a)
	}
}

// untilKeys waits until the rows are encrypted with these keys.
func (w *installation) untilKeys(want map[string]int) {
	w.t.Helper()
	polltest.Until(w.t, fmt.Sprintf("the rows by key are %v", want), func() bool {
		counts, err := authserver.CountKeys(w.t.Context(), w.nats.Connect(w.t, "operator"), nil)
		if err != nil {
			w.t.Fatal(err)
		}
		return maps.Equal(counts, want)
	})
}
