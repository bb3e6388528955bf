package format

import (
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func TestToolsAreFoundByWhatTheyAreFor(t *testing.T) {
	tools := recorded(t)
	var terms []Terms
	for _, tool := range tools {
		terms = append(terms, TermsOf(tool))
	}
	r := NewRanking(terms)
	for query, want := range map[string]string{
		"read a text file":        "read_text_file",
		"create directories":      "create_directory",
		"add two numbers":         "get-sum",
		"knowledge graph search":  "search_nodes",
		"step by step thinking":   "sequentialthinking",
		"moveFile":                "move_file",
		"delete entity relations": "delete_relations",
	} {
		best := r.Best(query)
		var names []string
		for _, at := range best[:min(len(best), 3)] {
			names = append(names, tools[at].Name)
		}
		if !slices.Contains(names, want) {
			t.Errorf("%q finds %v, not %s", query, names, want)
		}
	}
	if got := r.Best("zebra"); len(got) != 0 {
		t.Errorf("nothing is about zebras, and %d tools are found", len(got))
	}
	if got := r.Best(""); len(got) != 0 {
		t.Errorf("an empty query finds %d tools", len(got))
	}
}

func TestNoToolsAreNoTrouble(t *testing.T) {
	if got := NewRanking(nil).Best("x"); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := NewRanking([]Terms{TermsOf(&schema.Tool{Raw: []byte("no JSON")})}).Best("x"); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestTokensFollowTheText(t *testing.T) {
	small, large := Tokens([]byte(`{"name":"echo"}`)), Tokens([]byte(`{"name":"echo","description":"`+strings.Repeat("word ", 100)+`"}`))
	if small < 10 || small > 20 || large-small < 90 || large-small > 130 {
		t.Errorf("%d and %d tokens", small, large)
	}
	if spaced := Tokens([]byte("{ \"name\" :\n \"echo\" }")); spaced > small+4 {
		t.Errorf("white space costs %d tokens", spaced-small)
	}
	if han := Tokens([]byte(`温度温度`)); han < 4 {
		t.Errorf("four characters cost %d tokens", han)
	}
}

func BenchmarkTool(b *testing.B) {
	tools := recorded(b)
	for _, f := range []Format{OpenAI, Anthropic, Gemini} {
		b.Run(string(f), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				t := tools[i%len(tools)]
				f.Tool(Name(t.Server, t.Name), t, false)
			}
		})
	}
}
