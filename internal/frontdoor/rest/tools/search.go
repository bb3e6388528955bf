package tools

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/search"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// ToolSearch is the answer to GET /tools/search.
type ToolSearch struct {
	Tools     []FoundTool `json:"tools" nullable:"false" doc:"The matching tools, best match first; empty if no tool matches."`
	Unmatched []string    `json:"unmatched" nullable:"false" doc:"The words of the query that no tool contains. If tools is empty, replace them by other words."`
	Searched  int         `json:"searched" doc:"The number of tools that were searched: those that can be called."`
	Ranking   string      `json:"ranking" enum:"bm25f,hybrid" doc:"How the tools were ranked. bm25f: by words. hybrid: by words and embeddings."`
	Note      string      `json:"ranking_note,omitempty" doc:"The reason that the configured embeddings were not used."`
	Unknown   []string    `json:"unknown,omitempty" nullable:"false" doc:"Servers whose tools are currently unknown and were not searched."`
}

// FoundTool is a tool that matches a query.
type FoundTool struct {
	Server    schema.ServerID `json:"server" doc:"The id of the server." example:"files"`
	Tool      string          `json:"tool" doc:"The name of the tool." example:"read_text"`
	NameInSet string          `json:"name_in_set,omitempty" doc:"Its name in the set that was searched."`
	Signature string          `json:"signature" doc:"How it is called, in one line: required parameters first, optional ones with a question mark." example:"read_text(path: string, head?: integer)"`
	Summary   string          `json:"summary,omitempty" doc:"The beginning of its description, as its server sent it." example:"Reads a text file."`
	Score     float64         `json:"score" doc:"The relevance, comparable only within this answer." example:"7.31"`
	Risk      string          `json:"risk" enum:"low,medium,high" doc:"The risk of a call without arguments; the arguments of a call can change it."`
	Decision  string          `json:"decision" enum:"run,hold,sandbox,deny" doc:"What the policy decides for your call without arguments: it runs, is held for approval, runs in a sandbox, or is denied. The arguments of a call can change it."`
}

// decisionOf returns the level and decision of an assessment as text.
func decisionOf(a *risk.Assessment) (level, decision string) {
	level = risk.LevelName(max(a.Level, risk.Low))
	switch {
	case a.Deny:
		return level, "deny"
	case a.Approval != nil:
		return level, "hold"
	case a.Sandbox != "":
		return level, "sandbox"
	}
	return level, "run"
}

type searchHandlers struct {
	catalog *catalog.Catalog
	calls   *calls.Calls
}

const (
	searchLimit    = 10
	maxSearchLimit = 100
)

// search serves GET /tools/search.
func (h *searchHandlers) search(x *httpapi.Exchange, r *http.Request) (ToolSearch, error) {
	query := strings.TrimSpace(x.Query.Get("q"))
	if query == "" {
		return ToolSearch{}, schema.Errorf(schema.KindInvalidRequest, "The parameter q is missing; describe in words what the tool should do.")
	}
	f, err := x.Seen(h.catalog).Search(r.Context(), catalog.Query{Text: query, Server: schema.ServerID(x.Query.Get("server")), Set: x.Query.Get("set"), Most: httpapi.Number(x.Query, "limit", searchLimit)})
	if err != nil {
		return ToolSearch{}, err
	}
	answer := ToolSearch{Tools: make([]FoundTool, 0, len(f.Tools)), Unmatched: append([]string{}, f.Unmatched...), Searched: f.Callable, Ranking: "bm25f", Note: f.Words, Unknown: f.Unknown}
	if f.Hybrid {
		answer.Ranking = "hybrid"
	}
	for i := range f.Tools {
		t := &f.Tools[i]
		a := h.calls.Preview(&t.Tool, x.Principal)
		level, decision := decisionOf(&a)
		answer.Tools = append(answer.Tools, FoundTool{
			Server: t.Server, Tool: t.Name, NameInSet: t.NameInSet, Signature: search.Signature(t.Name, t.Input), Summary: search.Summary(t.Raw),
			Score: t.Score, Risk: level, Decision: decision,
		})
	}
	return answer, nil
}

func opSearchTools() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/tools/search", "search-tools", openapi.TagServers, "Search tools",
		"The tools that match a description in words, best first, with how to call each of them and what the policy decides for a call without arguments. Only tools that can be called are searched. If no tool matches, the list is empty, and unmatched has the words that no tool has.", http.StatusNotFound)
	text := openapi.String()
	text.MaxLength, text.MinLength = new(2048), new(1)
	q := openapi.QueryParam("q", "What the tool should do, in words.", text)
	q.Required, q.Example = true, "read a file"
	op.Parameters = []*huma.Param{
		q, openapi.QueryParam("server", "Only tools of this server.", openapi.String()), openapi.QueryParam("set", "Only tools of this set.", openapi.String()),
		openapi.QueryParam("limit", "The maximum number of tools; the default is 10.", openapi.Integers(1, maxSearchLimit)),
	}
	return op
}
