package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/pkg/bus/bustest"
	"github.com/callyard/callyard/pkg/schema"
)

// vocabulary is small enough for tools to have words in common and for scores to be
// equal.
var vocabulary = strings.Fields("read write file files list delete entity relation graph weather temperature city user users invoice pay payment search find text image résumé 温度 a the of to")

func phrase(r *rand.Rand, most int) string {
	words := make([]string, r.IntN(most+1))
	for i := range words {
		words[i] = vocabulary[r.IntN(len(vocabulary))]
	}
	return strings.Join(words, [...]string{" ", "_", ", "}[r.IntN(3)])
}

// someTools makes tools that share words, as fleets have them.
func someTools(r *rand.Rand, server string, n int) []*schema.Tool {
	tools := make([]*schema.Tool, n)
	for i := range tools {
		name := fmt.Sprintf("%s_%d", phrase(r, 2), i)
		properties := make([]string, r.IntN(4))
		for j := range properties {
			properties[j] = fmt.Sprintf(`"p%d_%s":{"description":%q}`, j, vocabulary[r.IntN(len(vocabulary))], phrase(r, 3))
		}
		tools[i] = &schema.Tool{Server: server, Name: name, Raw: fmt.Appendf(nil, `{"name":%q,"title":%q,"description":%q,"inputSchema":{"type":"object","properties":{%s}}}`,
			name, phrase(r, 2), phrase(r, 12), strings.Join(properties, ","))}
	}
	return tools
}

// scan looks at every tool, as the search did before there was an index.
func scan(in []segment, query string) []*schema.Tool {
	var tools []*schema.Tool
	var terms []format.Terms
	for i := range in {
		for at, t := range in[i].tools {
			if !in[i].out(int32(at)) {
				tools, terms = append(tools, t), append(terms, format.TermsOf(t))
			}
		}
	}
	var found []*schema.Tool
	for _, at := range ranked(terms, query) {
		found = append(found, tools[at])
	}
	return found
}

// ranked returns the places of the tools that have to do with the query, the best first; of
// equal ones the earlier first.
func ranked(all []format.Terms, query string) []int {
	average, in := 0.0, make(map[string]int) // in how many tools a word is
	for _, terms := range all {
		average += terms.Length() / float64(len(all))
		for word := range terms {
			in[word]++
		}
	}
	var places []int
	scores := make([]float64, len(all))
	for i, terms := range all {
		for _, word := range format.Words(query) {
			if n := terms[word]; n != 0 {
				scores[i] += format.Relevance(format.Rarity(len(all), in[word]), n, terms.Length(), average)
			}
		}
		if scores[i] > 0 {
			places = append(places, i)
		}
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return places
}

// recordedSegments are the indexes of the tools that real servers sent.
func recordedSegments(t *testing.T) []segment {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "format", "testdata", "tools", "*.ndjson"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files of tools, %v", len(files), err)
	}
	var in []segment
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var tools []*schema.Tool
		for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
			tool := &schema.Tool{Server: strings.TrimSuffix(filepath.Base(file), ".ndjson"), Raw: json.RawMessage(line)}
			if err := json.Unmarshal(tool.Raw, &struct{ Name *string }{&tool.Name}); err != nil {
				t.Fatal(err)
			}
			tools = append(tools, tool)
		}
		x := newIndex(tools)
		in = append(in, segment{index: &x, left: len(tools)})
	}
	return in
}

func TestToolsAreFoundByWhatTheyAreFor(t *testing.T) {
	in := recordedSegments(t)
	for query, want := range map[string]string{
		"read a text file":        "read_text_file",
		"create directories":      "create_directory",
		"add two numbers":         "get-sum",
		"knowledge graph search":  "search_nodes",
		"step by step thinking":   "sequentialthinking",
		"moveFile":                "move_file",
		"delete entity relations": "delete_relations",
	} {
		best := find(in, query, 0)
		var names []string
		for _, h := range best[:min(len(best), 3)] {
			names = append(names, h.segment.tools[h.at].Name)
		}
		if !slices.Contains(names, want) {
			t.Errorf("%q finds %v, not %s", query, names, want)
		}
	}
	if got := find(in, "zebra", 0); len(got) != 0 {
		t.Errorf("nothing is about zebras, and %d tools are found", len(got))
	}
	if got := find(in, "", 0); len(got) != 0 {
		t.Errorf("an empty query finds %d tools", len(got))
	}
}

func TestNoToolsAreNoTrouble(t *testing.T) {
	if got := find(nil, "x", 0); len(got) != 0 {
		t.Errorf("%v", got)
	}
	x := newIndex([]*schema.Tool{{Raw: []byte("no JSON")}})
	if got := find([]segment{{index: &x, left: 1}}, "x", 0); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func someSegments(r *rand.Rand, servers, each int) []segment {
	in := make([]segment, servers)
	for i := range in {
		x := newIndex(someTools(r, fmt.Sprintf("server-%04d", i), each))
		in[i] = segment{index: &x}
		var off []string
		for _, t := range x.tools {
			if r.IntN(20) == 0 {
				off = append(off, t.Name)
			}
		}
		in[i].leaveOut(append(off, "no such tool"))
	}
	return in
}

func TestTheIndexFindsWhatALookAtEveryToolFindsInTheSameOrder(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		in := someSegments(r, r.IntN(7), 1+r.IntN(25))
		for range 20 {
			query := phrase(r, 5)
			want := scan(in, query)
			for _, most := range []int{0, 1 + r.IntN(12)} {
				var got []*schema.Tool
				for _, h := range find(in, query, most) {
					got = append(got, h.segment.tools[h.at])
				}
				if most > 0 {
					want = want[:min(most, len(want))]
				}
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, %q, at most %d: the index finds %v, a look at every tool %v", seed, query, most, names(got), names(want))
				}
			}
		}
	}
}

func names(tools []*schema.Tool) (all []string) {
	for _, t := range tools {
		all = append(all, t.Server+"/"+t.Name)
	}
	return all
}

func TestASearchKnowsServersSwitchesAndBounds(t *testing.T) {
	srv := bustest.Start(t)
	same := tools(`{"name":"read_file","description":"Reads a file"}`, `{"name":"weather","description":"The weather of a city"}`)
	h := newHerald(t, srv, "worker", map[string]*schema.Definitions{"a": same, "b": same})
	h.me.Servers = append(h.me.Servers, schema.Server{ID: "dead", State: schema.StateError, Error: "exited"})
	c := open(t, srv)
	h.heartbeat()
	h.announceUntil(c, "the tools of both servers", func() bool {
		_, errA := c.Tools("a")
		_, errB := c.Tools("b")
		return errA == nil && errB == nil
	})
	found, callable, unknown, err := c.Search("read a file", "", 0, false)
	if got := toolNames(found); err != nil || !slices.Equal(got, []string{"a/read_file", "b/read_file", "a/weather", "b/weather"}) || callable != 4 || !slices.Equal(unknown, []string{"dead"}) {
		t.Errorf("%v, %d callable, %v unknown, %v", got, callable, unknown, err)
	}
	if found, callable, _, err = c.Search("read a file", "", 1, false); err != nil || len(found) != 1 || callable != 4 {
		t.Errorf("%v, %d callable, %v", toolNames(found), callable, err)
	}
	if found, callable, unknown, err = c.Search("file", "b", 0, false); err != nil || !slices.Equal(toolNames(found), []string{"b/read_file"}) || callable != 2 || unknown != nil {
		t.Errorf("%v, %d callable, %v, %v", toolNames(found), callable, unknown, err)
	}
	if _, err := c.Switch(t.Context(), "a", "read_file", false, "old", "ops"); err != nil {
		t.Fatal(err)
	}
	if found, callable, _, err = c.Search("file", "", 0, false); err != nil || !slices.Equal(toolNames(found), []string{"b/read_file"}) || callable != 3 {
		t.Errorf("%v, %d callable, %v", toolNames(found), callable, err)
	}
	if _, _, _, err = c.Search("file", "none", 0, false); err == nil {
		t.Error("a server that is not there was searched")
	}
	if found, _, _, err = c.Search("zebra", "", 0, false); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", toolNames(found), err)
	}
}

func toolNames(tools []Tool) (all []string) {
	for _, t := range tools {
		all = append(all, t.Server+"/"+t.Name)
	}
	return all
}

// The words of a fleet grow with it, so its tools have words of their own here.
func BenchmarkSearch(b *testing.B) {
	for _, tools := range []int{1000, 5000, 20_000} {
		r := rand.New(rand.NewPCG(1, 2))
		in := make([]segment, tools/25)
		for i := range in {
			list := someTools(r, fmt.Sprintf("server-%04d", i), 25)
			for j, t := range list {
				t.Raw = fmt.Appendf(nil, `{"name":%q,"description":"Word%d of subject%d, %s"}`, t.Name, i*25+j, i, phrase(r, 6))
			}
			x := newIndex(list)
			in[i] = segment{index: &x}
			in[i].leaveOut(nil)
		}
		for _, q := range []struct {
			name, query string
			most        int
		}{{"rare", fmt.Sprintf("word%d subject%d", tools/2, tools/50), 0}, {"common", "read a file of the user", 20}, {"all", "read a file of the user", 0}} {
			b.Run(fmt.Sprintf("%s/%d", q.name, tools), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					find(in, q.query, q.most)
				}
			})
		}
		b.Run(fmt.Sprintf("scan/%d", tools), func(b *testing.B) {
			for b.Loop() {
				scan(in, "read a file of the user")
			}
		})
	}
}
