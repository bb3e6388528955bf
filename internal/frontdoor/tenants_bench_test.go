package frontdoor_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkForeignIDs alternately requests resources of another tenant and resources that never
// existed, and reports for each kind of ID the ratio of the median times.
func BenchmarkForeignIDs(b *testing.B) {
	w := openTenantFabric(b)
	suffixes := map[string]string{"/servers/": "/tools", "/confirmations/": "?", "/evaluations/": "?"}
	kinds := slices.Sorted(maps.Keys(w.ids))
	took := make(map[string]*[2][]time.Duration)
	for n := 0; b.Loop(); n++ {
		for _, kind := range kinds {
			if took[kind] == nil {
				took[kind] = new([2][]time.Duration)
			}
			for i := range 2 {
				i = (i + n) % 2 // alternate which is first
				id := [2]string{w.ids[kind].foreign, w.ids[kind].unknown}[i]
				began := time.Now()
				status, _, answer := w.with(w.blues["wide"], "GET", kind+id+suffixes[kind], "")
				took[kind][i] = append(took[kind][i], time.Since(began))
				if status != http.StatusNotFound && status != http.StatusForbidden && status != http.StatusMethodNotAllowed {
					b.Fatalf("%s%s: %d %s", kind, id, status, answer)
				}
			}
		}
	}
	for kind, of := range took {
		for i := range of {
			slices.Sort(of[i])
		}
		b.ReportMetric(float64(of[0][len(of[0])/2])/float64(of[1][len(of[1])/2]), strings.Trim(kind, "/")+"-foreign/unknown")
	}
}
