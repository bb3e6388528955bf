package search

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/schema"
)

func tool(t testing.TB, server schema.ServerID, name, description string, parameters ...string) *schema.Tool {
	t.Helper()
	properties := make(map[string]any)
	for _, p := range parameters {
		properties[p] = map[string]any{"type": "string"}
	}
	raw, err := json.Marshal(map[string]any{"name": name, "description": description, "inputSchema": map[string]any{"type": "object", "properties": properties}})
	if err != nil {
		t.Fatal(err)
	}
	return &schema.Tool{Server: server, Name: name, Raw: raw}
}

func wordsOf(text string, singles bool) (all []string) {
	words(text, singles, func(w string) { all = append(all, w) })
	return all
}

func names(parts []Part, r Result) (all []string) {
	for _, h := range r.Hits {
		all = append(all, parts[h.Part].Tool(h.At).Name)
	}
	return all
}

func TestTextIsSplitIntoStemmedWords(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"readTextFile", "read text file"},
		{"read_text-files", "read text file"},
		{"HTMLParser getURL", "html parser get url"},
		{"creating cities, planned movies", "creat citi plan movi"},
		{"Résumé RÉSUMÉ résumé", "resum resum resum"},
		{"ﬁle Ⅷ", "file viii"},
		{"天気予報", "天気 気予 予報"},
		{"файлы Ёлка", "файлы елка"},
		{"หา", "หา"},
		{"हिन्दी", "हिन्दी"},
		{"get天気API", "get 天気 api"},
		{" \x00\xff—… ", ""},
	} {
		if got := strings.Join(wordsOf(c.text, false), " "); got != c.want {
			t.Errorf("%q becomes %q, not %q", c.text, got, c.want)
		}
	}
}

func TestQueriesInOtherScriptsFindTools(t *testing.T) {
	parts := []Part{NewSegment([]*schema.Tool{
		tool(t, "s", "get_weather", "都市の天気予報を返します"), tool(t, "s", "read_file", "读取文件的内容"), tool(t, "s", "translate", "แปลข้อความเป็นภาษาไทย"),
		tool(t, "s", "delete", "удаляет файл с диска"), tool(t, "s", "resume", "Liest den Lebenslauf (résumé)"), tool(t, "s", "calendar", "일정을 추가합니다"),
	}, nil).Without(nil)}
	for query, want := range map[string]string{
		"天気予報": "get_weather", "天": "get_weather", "读取文件": "read_file", "แปลข้อความ": "translate", "удаляет файл": "delete", "RESUME": "resume", "일정 추가": "calendar",
	} {
		if got := names(parts, Find(parts, query, 3)); len(got) == 0 || got[0] != want {
			t.Errorf("%q finds %v, not %s", query, got, want)
		}
	}
}

func TestUnrelatedQueryFindsNoTool(t *testing.T) {
	parts := []Part{NewSegment([]*schema.Tool{
		tool(t, "files", "read_file", "Reads a file", "path"), tool(t, "files", "write_file", "Writes a file", "path"), tool(t, "mail", "send_message", "Sends a message to a person", "to"),
		tool(t, "git", "git_log", "Shows the commits"), tool(t, "git", "git_diff", "Shows the changes"), tool(t, "db", "query", "Runs SQL"),
	}, nil).Without(nil)}
	for _, query := range []string{"", " ", "zebra", "renew the driving licence of my person", "?!", "\xff\xfe"} {
		if r := Find(parts, query, 5); len(r.Hits) != 0 {
			t.Errorf("%q finds %v", query, names(parts, r))
		}
	}
	r := Find(parts, "read the file, encrypted", 5)
	if got := names(parts, r); len(got) == 0 || got[0] != "read_file" || !slices.Equal(r.Unmatched, []string{"encrypted"}) {
		t.Errorf("finds %v, unmatched %q", got, r.Unmatched)
	}
	if got := names(parts, Find(parts, "send a mesage", 5)); len(got) == 0 || got[0] != "send_message" {
		t.Errorf("a misspelled word finds %v", got)
	}
	if got := Find(nil, "read", 0); len(got.Hits) != 0 {
		t.Errorf("no tools: %v", got)
	}
}

func TestTagsAndAliasesAreSearched(t *testing.T) {
	tagged := tool(t, "s", "x1", "Does it")
	tagged.Tags = []string{"billing"}
	parts := []Part{NewSegment([]*schema.Tool{tagged, tool(t, "s", "x2", "Does it"), tool(t, "s", "x3", "Does it")}, func(name string) Labels {
		if name == "x2" {
			return Labels{Tags: []string{"payroll"}, Aliases: []string{"pay_wages"}}
		}
		return Labels{}
	}).Without(nil)}
	for query, want := range map[string]string{"billing": "x1", "payroll": "x2", "wages": "x2"} {
		if got := names(parts, Find(parts, query, 0)); !slices.Equal(got, []string{want}) {
			t.Errorf("%q finds %v", query, got)
		}
	}
}

// vocabulary is small enough for tools to have words in common and for scores to be equal.
var vocabulary = strings.Fields("read write file list delete entity relation graph weather temperature city user invoice pay search find text image 温度")

func phrase(r *rand.Rand, most int) string {
	all := make([]string, r.IntN(most+1))
	for i := range all {
		all[i] = vocabulary[r.IntN(len(vocabulary))]
	}
	return strings.Join(all, " ")
}

func randomTools(t testing.TB, r *rand.Rand, server schema.ServerID, n int) (all []*schema.Tool) {
	for i := range n {
		all = append(all, tool(t, server, fmt.Sprintf("%s %d", phrase(r, 2), i), phrase(r, 12), vocabulary[r.IntN(len(vocabulary))], vocabulary[r.IntN(len(vocabulary))]))
	}
	return all
}

// Hidden tools must not be found, nor change what is found: an index with hidden tools is as one
// that never had them.
func TestHiddenToolsDoNotAffectResults(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		var with, without []Part
		for s := range 1 + r.IntN(5) {
			all := randomTools(t, r, schema.ServerID(fmt.Sprint("server", s)), 1+r.IntN(20))
			var hidden []string
			var left []*schema.Tool
			for _, x := range all {
				if r.IntN(4) == 0 {
					hidden = append(hidden, x.Name)
				} else {
					left = append(left, x)
				}
			}
			with = append(with, NewSegment(all, nil).Without(append(hidden, "no such tool")))
			without = append(without, NewSegment(left, nil).Without(nil))
		}
		for range 20 {
			query := phrase(r, 4)
			all := Find(without, query, 0)
			for _, most := range []int{0, 1 + r.IntN(8)} {
				want := names(without, all)
				if most > 0 {
					want = want[:min(most, len(want))]
				}
				if got := names(with, Find(with, query, most)); !slices.Equal(got, want) {
					t.Fatalf("seed %d, %q, at most %d: %v, want %v", seed, query, most, got, want)
				}
			}
		}
	}
}

// A description that repeats everything must not come before the tool that is meant.
func TestKeywordStuffedDescriptionIsNotRankedFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	tools := randomTools(t, r, "s", 200)
	stuffed := tool(t, "s", "best", strings.Repeat("the best tool for "+strings.Join(vocabulary, " ")+" ", 50))
	parts := []Part{NewSegment(append(tools, stuffed), nil).Without(nil)}
	top := 0
	for range 200 {
		if slices.Contains(names(parts, Find(parts, phrase(r, 3)+" "+vocabulary[r.IntN(len(vocabulary))], 5)), "best") {
			top++
		}
	}
	if top > 10 {
		t.Errorf("it is among the first five of %d of 200 queries", top)
	}
}

func FuzzFind(f *testing.F) {
	f.Add("read file", `{"name":"read","description":"Reads"}`)
	f.Add("天気 x\xff", `{"name":"天気","inputSchema":{"properties":{"a":{"description":"天"}}}}`)
	f.Add("ing ed s ies", `{"title":[1],"inputSchema":{"properties":{"é":1}}}`)
	f.Fuzz(func(t *testing.T, query, raw string) {
		parts := []Part{NewSegment([]*schema.Tool{{Server: "s", Name: query, Raw: json.RawMessage(raw)}, tool(t, "s", "other", raw)}, nil).Without(nil)}
		r := Find(parts, query, 5)
		if len(r.Hits) > 2 || len(r.Unmatched) > maxWords {
			t.Errorf("%d hits, %d unmatched words", len(r.Hits), len(r.Unmatched))
		}
		Find(parts, raw, 0)
	})
}

// wordFor is a word for a number, with its first letters as different as those of a language.
func wordFor(n uint64) string {
	b := []byte("xxxx")
	for i, x := 0, n*2654435761%(26*26*26*26); i < 4; i, x = i+1, x/26 {
		b[i] = 'a' + byte(x%26)
	}
	return string(b)
}

// The words of large fleets: few are in most tools, most in few.
func largeFleet(b *testing.B, servers, each int) (parts []Part) {
	r := rand.New(rand.NewPCG(7, 7))
	zipf := rand.NewZipf(r, 1.1, 4, 20_000)
	text := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = wordFor(zipf.Uint64())
		}
		return strings.Join(all, " ")
	}
	for s := range servers {
		var tools []*schema.Tool
		for i := range each {
			tools = append(tools, tool(b, schema.ServerID(fmt.Sprint("server", s)), fmt.Sprintf("%s_%d", strings.ReplaceAll(text(3), " ", "_"), i), text(40), text(1), text(1), text(1)))
		}
		parts = append(parts, NewSegment(tools, nil).Without(nil))
	}
	return parts
}

// BenchmarkFind reports the 99th percentile of searches over 10,000 tools.
func BenchmarkFind(b *testing.B) {
	for _, servers := range []int{1, 500} {
		b.Run(fmt.Sprint("servers=", servers), func(b *testing.B) {
			parts := largeFleet(b, servers, 10_000/servers)
			benchmarkQueries(b, parts)
		})
	}
}

func TestAMisspelledWordIsNotReplacedByAWordOfHiddenTools(t *testing.T) {
	s := NewSegment([]*schema.Tool{
		tool(t, "a", "calendar_show", "Shows a calendar."), tool(t, "a", "calandar_old", "Old."), tool(t, "a", "calandar_older", "Older."),
	}, nil)
	parts := []Part{s.Without([]string{"calandar_old", "calandar_older"})}
	if got := names(parts, Find(parts, "calndar", 0)); len(got) != 1 || got[0] != "calendar_show" {
		t.Errorf("found %v", got)
	}
}
