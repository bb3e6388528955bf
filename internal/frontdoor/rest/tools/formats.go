package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/format"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
)

// ProviderToolList is the answer to GET /tools in the format of a provider.
type ProviderToolList struct {
	Format   string              `json:"format" enum:"openai,openai-responses,anthropic,gemini" doc:"The format of the tools."`
	Tools    []openapi.AnyObject `json:"tools" nullable:"false" doc:"The value for the member tools of a request to the provider."`
	Count    int                 `json:"count" doc:"The number of tools."`
	Tokens   int                 `json:"tokens" doc:"The estimated number of tokens that they use."`
	Omitted  int                 `json:"omitted" doc:"The number of tools that max_tools, budget_tokens or query excluded."`
	Names    []ProviderToolName  `json:"names" nullable:"false" doc:"The server and tool of each name."`
	Loosened []ProviderLoosening `json:"loosened" nullable:"false" doc:"The parts of the tools' schemas that the provider's schemas cannot express; the descriptions state them for the model."`
	Notes    []string            `json:"notes,omitempty" nullable:"false" doc:"Remarks, such as: more tools than the provider accepts."`
	Unknown  []string            `json:"unknown,omitempty" nullable:"false" doc:"Servers whose tools are currently unknown and therefore missing."`
}

// ProviderToolName maps a name to its tool.
type ProviderToolName struct {
	Name   string          `json:"name" doc:"The name of the tool for the model." example:"everything__echo"`
	Server schema.ServerID `json:"server" doc:"The id of the server." example:"everything"`
	Tool   string          `json:"tool" doc:"The name of the tool at its server." example:"echo"`
	Tokens int             `json:"tokens" doc:"The estimated number of tokens that the tool uses."`
	Strict bool            `json:"strict,omitempty" doc:"Whether the tool uses the provider's strict mode."`
}

// ProviderLoosening is a constraint that a provider's schema cannot express.
type ProviderLoosening struct {
	Name    string `json:"name" doc:"The provider's name of the tool." example:"everything__echo"`
	Pointer string `json:"pointer" doc:"A JSON pointer (RFC 6901) into the tool's own input schema; empty means the whole schema." example:"/properties/count/multipleOf"`
	Message string `json:"message" doc:"The constraint, in words." example:"multipleOf 5"`
}

// toolListBody is one of the two bodies of GET /tools.
type toolListBody struct {
	pages    *ToolList
	provider *ProviderToolList
}

// MarshalJSON encodes the body that is set.
func (b toolListBody) MarshalJSON() ([]byte, error) {
	if b.provider != nil {
		return httpapi.Encode(b.provider), nil
	}
	return httpapi.Encode(b.pages), nil
}

// Schema returns the schema of both; see [huma.SchemaProvider]. Generated clients take the first schema
// that matches, and an empty list of a provider matches ToolList, too.
func (toolListBody) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{r.Schema(reflect.TypeFor[ProviderToolList](), true, ""), r.Schema(reflect.TypeFor[ToolList](), true, "")}}
}

// chosen reports whether the caller wants a selection of the tools by their properties.
func (in *toolListInput) chosen() bool {
	return in.Query != "" || in.MaxTools > 0 || in.BudgetTokens > 0
}

// listed is a tool with its name in the requested set. The name is "" if no set was requested.
type listed struct {
	catalog.Tool
	setName string
}

// name returns the name that a model uses for the tool.
func (t *listed) name() string {
	if t.setName == "" {
		return format.Name(string(t.Server), t.Name)
	}
	return format.NameAs(t.setName, string(t.Server), t.Name)
}

// offers reports whether the list includes the tool.
func (in *toolListInput) offers(t *catalog.Tool) bool {
	return t.Offered() || in.Include == includeOffline && t.Switch.Enabled && !t.Quarantined()
}

const includeOffline = "offline"

// callable returns the tools to list, sorted by server and name or in the order of the set, and
// the servers whose tools are not known.
func callable(seen *catalog.Seen, in *toolListInput) (tools []listed, unknown []string, err error) {
	if in.Set != "" {
		view, err := seen.SetView(in.Set)
		if err != nil {
			return nil, nil, err
		}
		for i := range view.Tools {
			if t := &view.Tools[i]; in.offers(&t.Tool) && (in.Server == "" || t.Server == in.Server) {
				tools = append(tools, listed{t.Tool, t.Name})
			}
		}
		return tools, nil, nil
	}
	servers, err := in.servers(seen)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range servers {
		of, err := seen.Tools(s.ID)
		if err != nil {
			unknown = append(unknown, string(s.ID))
			continue
		}
		of = slices.DeleteFunc(of, func(t catalog.Tool) bool { return !in.offers(&t) })
		slices.SortFunc(of, func(a, b catalog.Tool) int { return cmp.Compare(a.Name, b.Name) })
		for _, t := range of {
			tools = append(tools, listed{Tool: t})
		}
	}
	return tools, unknown, nil
}

// candidates returns the tools to choose from in order of preference, the number of callable tools,
// and the servers whose tools are not known.
func candidates(ctx context.Context, seen *catalog.Seen, in *toolListInput) (tools []listed, all int, unknown []string, err error) {
	if in.Query == "" {
		tools, unknown, err = callable(seen, in)
		return tools, len(tools), unknown, err
	}
	most := in.MaxTools
	if in.BudgetTokens > 0 {
		most = 0 // a tool over the budget is skipped, so later ones are needed
	}
	f, err := seen.Search(ctx, catalog.Query{Text: in.Query, Server: in.Server, Set: in.Set, Most: most, Offline: in.Include == includeOffline})
	if err != nil {
		return nil, 0, nil, err
	}
	for _, t := range f.Tools {
		tools = append(tools, listed{t.Tool, t.NameInSet})
	}
	if in.Set != "" {
		f.Unknown = nil
	}
	return tools, f.Callable, f.Unknown, nil
}

// choose serves GET /tools in a provider's format, or with a selection.
func (h *toolHandlers) choose(ctx context.Context, in *toolListInput) (*toolListOutput, error) {
	f, err := format.Parse(in.Format)
	if err != nil {
		return nil, err
	}
	if in.Cursor != "" {
		return nil, schema.Errorf(schema.KindInvalidRequest, "A list in a provider's format, or with a selection, has no pages: omit cursor.")
	}
	if in.Strict && f != format.OpenAI && f != format.Responses {
		return nil, schema.Errorf(schema.KindInvalidRequest, "strict is a mode of openai and openai-responses; omit it for %s.", in.Format)
	}
	if in.DeferLoading && f != format.Anthropic {
		return nil, schema.Errorf(schema.KindInvalidRequest, "defer_loading is a member of Anthropic's tools; omit it for %s.", in.Format)
	}
	tools, all, unknown, err := candidates(ctx, httpapi.Of(ctx).Seen(h.catalog), in)
	if err != nil {
		return nil, err
	}
	list := &ProviderToolList{
		Format: in.Format, Tools: make([]openapi.AnyObject, 0, 1), Names: make([]ProviderToolName, 0, len(tools)), Loosened: make([]ProviderLoosening, 0), Unknown: unknown,
	}
	page := &ToolList{Tools: make([]ToolItem, 0), Unknown: unknown}
	var shown []format.Tool
	for i := range tools {
		if in.MaxTools > 0 && len(shown) == in.MaxTools {
			break
		}
		t := &tools[i]
		shape := h.shapes.of(f, t.name(), t.Tool.Tool, in.Strict)
		if in.BudgetTokens > 0 && list.Tokens+shape.Tokens > in.BudgetTokens {
			continue // a smaller tool may still fit
		}
		list.Tokens += shape.Tokens
		shown = append(shown, shape)
		if f == format.MCP {
			page.Tools = append(page.Tools, itemOf(&t.Tool, t.setName))
			continue
		}
		list.Names = append(list.Names, ProviderToolName{Name: shape.Name, Server: t.Server, Tool: t.Name, Tokens: shape.Tokens, Strict: shape.Strict})
		for _, l := range shape.Loosened {
			list.Loosened = append(list.Loosened, ProviderLoosening{shape.Name, l.Pointer, l.Message})
		}
	}
	if f == format.MCP {
		return &toolListOutput{Body: toolListBody{pages: page}}, nil
	}
	list.Count, list.Omitted = len(shown), all-len(shown)
	if most := f.MaxTools(); most > 0 && len(shown) > most {
		list.Notes = append(list.Notes, fmt.Sprintf("The provider accepts at most %d tools in a request, and there are %d: reduce them with max_tools, budget_tokens, query or server.", most, len(shown)))
	}
	var wrapped []json.RawMessage
	if err := json.Unmarshal(f.Wrap(shown), &wrapped); err != nil {
		return nil, schema.Errorf(schema.KindInternal, "The tools cannot be encoded: %w", err)
	}
	for _, raw := range wrapped {
		if in.DeferLoading {
			raw = rawjson.With(raw, "defer_loading", []byte("true"))
		}
		list.Tools = append(list.Tools, openapi.AnyObject{RawMessage: raw})
	}
	return &toolListOutput{Body: toolListBody{provider: list}}, nil
}

// maxShapes limits the cached shapes. When it is exceeded, all are rebuilt.
const maxShapes = 50_000

// Shapes caches tools in the formats of providers, because building them takes longer than the rest
// of a list of thousands. It is safe for concurrent use.
type Shapes struct {
	mu    sync.Mutex
	tools map[shapeKey]format.Tool
}

type shapeKey struct {
	name, digest string
	format       format.Format
	strict       bool
}

func newShapes() *Shapes {
	return &Shapes{tools: make(map[shapeKey]format.Tool)}
}

// Len returns the number of cached tools. It is for tests.
func (s *Shapes) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tools)
}

// of returns the tool in the given format and with the given name.
func (s *Shapes) of(f format.Format, name string, t *schema.Tool, strict bool) format.Tool {
	key := shapeKey{name, t.Digest, f, strict}
	s.mu.Lock()
	tool, ok := s.tools[key]
	s.mu.Unlock()
	if ok {
		return tool
	}
	tool = f.Tool(name, t, strict)
	s.mu.Lock()
	if len(s.tools) >= maxShapes {
		clear(s.tools)
	}
	s.tools[key] = tool
	s.mu.Unlock()
	return tool
}
