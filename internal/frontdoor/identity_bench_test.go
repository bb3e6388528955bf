package frontdoor_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/authn/token/tokentest"
	"github.com/callyard/callyard/internal/frontdoor"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/bus/bustest"
)

// BenchmarkCallsWithAToken sends each call once with an access token and once with an API key, over
// separate connections, and reports the ratio.
func BenchmarkCallsWithAToken(b *testing.B) {
	srv := bustest.Start(b)
	b.Cleanup(startCountingWorker(b, srv).let)
	is := tokentest.Start(b)
	d := openDoor(b, srv, frontdoor.Options{Config: settings.FrontDoor{PublicURL: publicURL, Issuers: []settings.Issuer{is.Entry("idp")}}})
	credentials := [2]string{is.Token(b, "ann", publicURL, "tools:call"), d.key}
	call := func(credential string) time.Duration {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, d.base+"/servers/s/tools/read", strings.NewReader("{}"))
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+credential)
		r.Header.Set("Content-Type", "application/json")
		began := time.Now()
		answer, err := d.http.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		_, err = io.Copy(io.Discard, answer.Body)
		took := time.Since(began)
		if err = errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusOK {
			b.Fatal(answer.Status, err)
		}
		return took
	}
	var took [2]time.Duration
	for n := 0; b.Loop(); n++ {
		for i := range credentials {
			i = (i + n) % 2 // alternate which is first
			took[i] += call(credentials[i])
		}
	}
	b.ReportMetric(float64(took[0].Nanoseconds())/float64(b.N), "token-ns/call")
	b.ReportMetric(float64(took[1].Nanoseconds())/float64(b.N), "key-ns/call")
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "throughput-ratio")
}
