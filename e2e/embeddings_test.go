package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// A search finds a tool by its meaning although it has none of the words. If the embeddings
// endpoint fails, the search uses words and reports that.
func TestSearchUsesEmbeddingsOrReportsFallback(t *testing.T) {
	var fails atomic.Bool
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/v1/embeddings" || fails.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		type vector struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		data := make([]vector, len(in.Input))
		for i, text := range in.Input {
			data[i] = vector{i, []float32{0, 1}}
			if strings.Contains(text, "demo add") || strings.Contains(text, "total") {
				data[i].Embedding = []float32{1, 0}
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(endpoint.Close)
	up := startUp(t, setup{env: []string{quickStop, "CALLYARD_FRONT_DOOR_EMBEDDINGS_URL=" + endpoint.URL + "/v1", "CALLYARD_FRONT_DOOR_EMBEDDINGS_MODEL=m"}})
	type found struct {
		Tools   []struct{ Server, Tool string }
		Ranking string
		Note    string `json:"ranking_note"`
	}
	search := func(q string) (f found) {
		a := up.ask(t, "GET", "/tools/search?q="+q, "")
		if err := json.Unmarshal(a.body, &f); err != nil {
			t.Fatalf("%s: %v", a.body, err)
		}
		return f
	}
	up.eventually(t, soon, "a tool that is found by its meaning", func() error {
		f := search("grand+total")
		if f.Ranking != "hybrid" || !slices.ContainsFunc(f.Tools, func(x struct{ Server, Tool string }) bool { return x.Server == "demo" && x.Tool == "add" }) {
			return fmt.Errorf("%+v", f)
		}
		return nil
	})
	fails.Store(true)
	if f := search("add+numbers"); f.Ranking != "bm25f" || !strings.Contains(f.Note, "503") || len(f.Tools) == 0 {
		t.Errorf("while the endpoint fails: %+v", f)
	}
}
