package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/kit/plainjson"
)

// linkedDocument is a document of 1,000 operations, one in ten with a body, over 400 schemas of
// which each leads to all others: each object has links to four more.
func linkedDocument(tb testing.TB) *document {
	tb.Helper()
	const operations, all = 1000, 400
	schemas, paths := map[string]any{}, map[string]any{}
	ref := func(i int) map[string]any {
		return map[string]any{"$ref": fmt.Sprint("#/components/schemas/Thing", i%all)}
	}
	for i := range all {
		properties := map[string]any{"id": map[string]any{"type": "string", "readOnly": true}, "links": map[string]any{"type": "array", "items": ref(i * 7)}}
		for n := range 6 {
			properties[fmt.Sprint("field", n)] = map[string]any{"type": "string", "nullable": true, "description": "A field of the thing.", "maxLength": n + 1}
		}
		for n, step := range []int{1, 13, 89} {
			properties[fmt.Sprint("link", n)] = ref(i + step)
		}
		schemas[fmt.Sprint("Thing", i)] = map[string]any{"type": "object", "properties": properties, "required": []any{"id", "field0"}}
	}
	for i := range operations {
		answer := map[string]any{"200": map[string]any{"description": "ok", "content": map[string]any{"application/json": map[string]any{"schema": ref(i)}}}}
		op := map[string]any{"operationId": fmt.Sprint("read", i), "responses": answer, "parameters": []any{
			map[string]any{"name": "id", "in": "path", "required": true, "schema": map[string]any{"type": "string"}}}}
		method := "get"
		if i%10 == 0 {
			method = "post"
			op["requestBody"] = map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": ref(i)}}}
		}
		paths[fmt.Sprintf("/things%d/{id}", i)] = map[string]any{method: op}
	}
	text, err := json.Marshal(map[string]any{"openapi": "3.0.3", "info": map[string]any{"title": "t", "version": "1"}, "paths": paths, "components": map[string]any{"schemas": schemas}})
	if err != nil {
		tb.Fatal(err)
	}
	doc, err := parse(tb.Context(), text)
	if err != nil {
		tb.Fatal(err)
	}
	return doc
}

// built returns the tools of a document.
func built(tb testing.TB, doc *document) []*operation {
	tb.Helper()
	b := &builder{cfg: &Config{ID: "x", OpenAPI: config.OpenAPI{}}, doc: doc, base: &url.URL{Scheme: "https", Host: "api.example"}}
	if err := b.build(); err != nil {
		tb.Fatal(err)
	}
	return b.operations
}

// randomDocument is a document of schemas with random references: into circles, to names that
// are alike under $defs, to nothing, and with more values than fit into a tool.
func randomDocument(r *rand.Rand) *document {
	all := 1 + r.IntN(150)
	name := func(i int) string {
		if i%17 == 3 { // as that of another, once it is legal
			return fmt.Sprint("Thing ", i+1)
		}
		return fmt.Sprint("Thing_", i)
	}
	ref := func() map[string]any {
		if r.IntN(200) == 0 {
			return map[string]any{"$ref": "#/components/schemas/None"}
		}
		return map[string]any{"$ref": "#/components/schemas/" + name(r.IntN(all)), "readOnly": r.IntN(5) == 0}
	}
	var schema func(depth int) map[string]any
	schema = func(depth int) map[string]any {
		switch n := r.IntN(6); {
		case depth == 0 || n == 0:
			return map[string]any{"type": "string", "format": "binary", "nullable": r.IntN(2) == 0, "description": "<é> & \u2028"}
		case n == 1:
			return map[string]any{"type": "array", "items": schema(depth - 1)}
		case n == 2:
			return map[string]any{"oneOf": []any{ref(), schema(depth - 1)}}
		case n == 3:
			return ref()
		}
		properties := map[string]any{}
		for i := range r.IntN(9) {
			properties[fmt.Sprint("p", i)] = schema(depth - 1)
		}
		return map[string]any{"type": "object", "properties": properties, "required": []any{"p0", "p1"}}
	}
	schemas := map[string]any{}
	for i := range all {
		schemas[name(i)] = schema(1 + r.IntN(4))
	}
	return &document{old: r.IntN(2) == 0, root: map[string]any{"components": map[string]any{"schemas": schemas}}}
}

func TestSharedSchemasEqualSchemasBuiltPerTool(t *testing.T) {
	linkedAtAll := 0
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		doc := randomDocument(r)
		schemas, _ := doc.at(doc.root, "components", "schemas").(map[string]any)
		for range 5 {
			var roots []any
			for _, name := range slices.Sorted(maps.Keys(schemas)) {
				if r.IntN(3) == 0 {
					continue
				}
				if roots = append(roots, map[string]any{"$ref": "#/components/schemas/" + name}, schemas[name]); len(roots) > 4 {
					break
				}
			}
			input, budget := r.IntN(2) == 0, outputBudget
			if r.IntN(2) == 0 {
				budget = r.IntN(1000)
			}
			convert := func(plain bool) (string, *conversion) {
				s := newSchemas(doc, input)
				s.plain, s.budget = plain, budget
				var out []any
				for _, root := range roots {
					out = append(out, s.of(root))
				}
				linked := !plain && !s.plain && len(s.defs) > 0
				text, err := plainjson.Marshal([]any{out, s.defs})
				if err != nil {
					t.Fatal(err)
				}
				return string(text), &conversion{s.cut, s.budget, linked}
			}
			want, alone := convert(true)
			got, shared := convert(false)
			if shared.linked {
				linkedAtAll++
			}
			if alone.cut != shared.cut || !(alone.cut && !input) && got != want || !alone.cut && alone.budget != shared.budget {
				t.Fatalf("seed %d, input %v: cut %v, want %v:\n%s\nwant\n%s", seed, input, shared.cut, alone.cut, got, want)
			}
		}
	}
	if linkedAtAll < 30 {
		t.Errorf("only %d schemas were made of shared parts", linkedAtAll)
	}
}

// conversion is what came of a conversion apart from its text.
type conversion struct {
	cut    bool
	budget int
	linked bool
}

func TestToolsOfADocumentShareConvertedSchemas(t *testing.T) {
	doc := linkedDocument(t)
	built(t, doc)
	if n := len(doc.parts); n != 2*400 {
		t.Errorf("%d parts were converted for 400 schemas as input and as output", n)
	}
}

func BenchmarkToolsOfALargeDocument(b *testing.B) {
	doc := linkedDocument(b)
	sum := sha256.New()
	n := 0
	for _, op := range built(b, doc) {
		sum.Write(op.tool)
		n += len(op.tool)
	}
	b.Logf("%d bytes, %s", n, hex.EncodeToString(sum.Sum(nil)))
	b.ResetTimer()
	for b.Loop() {
		built(b, doc)
	}
}
