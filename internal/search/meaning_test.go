package search

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

// plane has tools with vectors in a plane, by name.
func plane(vectors map[string][]float32, descriptions map[string]string) ([]Part, func(*schema.Tool) []float32) {
	var tools []*schema.Tool
	for name, about := range descriptions {
		raw, _ := json.Marshal(map[string]any{"name": name, "description": about})
		tools = append(tools, &schema.Tool{Server: "s", Name: name, Raw: raw, Digest: name})
	}
	return []Part{NewSegment(tools, nil).Without([]string{"hidden"})}, func(t *schema.Tool) []float32 { return vectors[t.Digest] }
}

func namesOf(parts []Part, r Result) (names []string) {
	for _, h := range r.Hits {
		names = append(names, parts[h.Part].Tool(h.At).Name)
	}
	return names
}

func TestVectorsAndWordsAreFusedByRank(t *testing.T) {
	parts, of := plane(map[string][]float32{
		"read_file": {0.8, 0.6}, "open_document": {1, 0}, "weather": {0, 1}, "hidden": {1, 0}, "other_model": {1, 0, 0},
	}, map[string]string{
		"read_file": "Reads a file.", "open_document": "Shows what stands on paper.", "weather": "Forecast.", "hidden": "Reads a file.", "other_model": "Sings.", "no_vector": "Reads a file by its name.",
	})
	m := Meaning{Query: []float32{1, 0}, Of: of, Least: 0.5}
	r := FindWith(parts, "read a file", m, 0)
	// read_file is in both rankings; open_document in that of vectors, no_vector in that of words.
	if got := namesOf(parts, r); len(got) != 3 || got[0] != "read_file" || slices.Contains(got, "hidden") || slices.Contains(got, "weather") {
		t.Errorf("%q finds %v", "read a file", got)
	}
	if want := 1.0/61 + 1.0/62; r.Hits[0].Score < want-1e-9 {
		t.Errorf("the score of what both rankings have is %v, less than %v", r.Hits[0].Score, want)
	}
	if got := namesOf(parts, FindWith(parts, "zebra", m, 1)); !slices.Equal(got, []string{"open_document"}) {
		t.Errorf("a query without a word of a tool finds %v", got)
	}
	m.Query = []float32{-1, 0}
	if got := namesOf(parts, FindWith(parts, "zebra", m, 5)); got != nil {
		t.Errorf("what no tool is similar to finds %v", got)
	}
}

func TestEmbeddingTextOfAToolIsBounded(t *testing.T) {
	raw, _ := json.Marshal(map[string]any{"name": "n", "title": "T", "description": strings.Repeat("é", 5000)})
	text := MeaningText(&schema.Tool{Server: "s", Name: "n", Raw: raw})
	if !strings.HasPrefix(text, "s n\nT\né") || len(text) > maxMeaning || !json.Valid([]byte(`"`+strings.ReplaceAll(text, "\n", " ")+`"`)) {
		t.Errorf("%d bytes, beginning %q", len(text), text[:20])
	}
}

// BenchmarkEmbeddings reports what vectors add to the words on LiveMCPBench, with the model
// behind CALLYARD_EMBEDDINGS_URL (such as http://127.0.0.1:8000/v1).
func BenchmarkEmbeddings(b *testing.B) {
	url := os.Getenv("CALLYARD_EMBEDDINGS_URL")
	if url == "" {
		b.Skip("CALLYARD_EMBEDDINGS_URL is not set")
	}
	parts, steps, whole := livemcp(b, dataOf(b, "CALLYARD_TEST_LIVEMCP", "baseline"))
	embed := func(text string) []float32 {
		body, _ := json.Marshal(map[string]any{"model": "m", "input": []string{text}})
		resp, err := http.Post(url+"/embeddings", "application/json", bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		var a struct {
			Data []struct{ Embedding []float32 }
		}
		if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
			b.Fatal(err)
		}
		return a.Data[0].Embedding
	}
	vectors := map[string][]float32{}
	for i := range parts {
		for _, tool := range parts[i].tools {
			vectors[string(tool.Server)+"/"+tool.Name] = embed(MeaningText(tool))
		}
	}
	of := func(t *schema.Tool) []float32 { return vectors[string(t.Server)+"/"+t.Name] }
	figure := func(qs []question, k int, least float64) float64 {
		sum := 0.0
		for _, q := range qs {
			found, all := 0, map[string]bool{}
			for _, h := range FindWith(parts, q.text, Meaning{embed(q.text), of, least}, k).Hits {
				if key := parts[h.Part].Tool(h.At).Digest; q.wants[key] && !all[key] {
					found, all[key] = found+1, true
				}
			}
			sum += float64(found) / float64(max(len(q.wants), 1))
		}
		return sum / float64(len(qs))
	}
	empty := 0
	queries := lines(b, "testdata/no-answer.txt")
	for _, q := range queries {
		if len(FindWith(parts, q, Meaning{embed(q), of, 0.4}, 5).Hits) == 0 {
			empty++
		}
	}
	for b.Loop() {
		b.ReportMetric(figure(steps, 5, 0.4), "step-recall@5")
		b.ReportMetric(figure(steps, 10, 0.4), "step-recall@10")
		b.ReportMetric(figure(whole, 10, 0.4), "task-recall@10")
		b.ReportMetric(float64(empty)/float64(len(queries)), "no-answer")
	}
}
