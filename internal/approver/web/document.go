package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/internal/validate"
	"github.com/callyard/callyard/internal/webhook"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	schemaPrefix = "#/components/schemas/"
	// pageKey is the key of the page for browsers in an operation's metadata.
	pageKey = "page"
)

// documentConfig returns the settings of all operations.
func documentConfig() huma.Config {
	config := huma.DefaultConfig("Callyard approver", "1")
	config.Info.Description = "Held calls and the decisions on them. GET requests change nothing."
	config.Servers = []*huma.Server{{URL: "/", Description: "This approver"}}
	config.Security = []map[string][]string{{"bearer": {}}, {"apiKey": {}}}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "An API key. An approver without keys and without an identity provider requires none and serves loopback only."},
		"apiKey": {Type: "apiKey", In: "header", Name: "X-API-Key", Description: "The same API key in its own header."},
	}
	// The document is an operation of our own. Huma's hook would add a $schema member to every
	// body.
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil
	// Responses may gain members. Request bodies refuse unknown ones.
	config.AllowAdditionalPropertiesByDefault = true
	names := map[reflect.Type]string{
		reflect.TypeFor[problem.Document](): "Problem", reflect.TypeFor[problem.Fault](): "ProblemFault", reflect.TypeFor[problem.RPCError](): "ProblemRPCError",
		reflect.TypeFor[schema.Error](): "CallError", reflect.TypeFor[ledger.Edited](): "ArgumentsEdit",
		reflect.TypeFor[webhook.Entry](): "WebhookDelivery", reflect.TypeFor[webhook.EntryList](): "WebhookDeliveryList",
		reflect.TypeFor[ledger.Value](): "PatternValue", reflect.TypeFor[ledger.Revocation](): "PermissionRevocation",
	}
	config.Components.Schemas = huma.NewMapRegistry(schemaPrefix, func(t reflect.Type, hint string) string {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if name := names[t]; name != "" {
			return name
		}
		return huma.DefaultSchemaNamer(t, hint)
	})
	return config
}

// operation returns an operation with its summary and description. answer describes its response.
// page, if not nil, serves browsers instead.
func operation(id, route, summary, description, answer string, page http.HandlerFunc) huma.Operation {
	method, path, _ := strings.Cut(route, " ")
	return huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: summary, Description: description, Metadata: map[string]any{pageKey: page},
		SkipValidateParams: true, // parameters are validated earlier, with our own messages
		Responses: map[string]*huma.Response{
			"200":     {Description: answer},
			"default": {Description: "A problem document (RFC 9457).", Content: map[string]*huma.MediaType{problem.MediaType: {Schema: ref("Problem")}}},
		},
	}
}

// public allows an operation without a key.
func public(op huma.Operation) huma.Operation {
	op.Security = []map[string][]string{}
	return op
}

func ref(name string) *huma.Schema { return &huma.Schema{Ref: schemaPrefix + name} }

func words[T ~string](all ...T) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, one := range all {
		s.Enum = append(s.Enum, string(one))
	}
	return s
}

// finishDocument adds the parts that Go types cannot express, and encodes the document.
func (a *api) finishDocument() error {
	registry := a.huma.OpenAPI().Components.Schemas
	registry.Schema(reflect.TypeFor[problem.Document](), true, "")
	all := registry.Map()
	for _, unused := range []string{"ErrorModel", "ErrorDetail"} {
		delete(all, unused) // Huma's internal schemas, which are never sent
	}
	for _, s := range all {
		plain(s)
	}
	all["State"], all["Kind"] = words(ledger.States()...), words(ledger.Approve, ledger.Deny, ledger.Edit, ledger.Extend, ledger.Revoke)
	all["State"].Description, all["Kind"].Description = stateText, kindText
	for _, name := range []string{"Summary", "Approval"} {
		replace(all[name], "state", ref("State"))
		all[name].Properties["may"].Items = ref("Kind")
	}
	for _, name := range []string{"Decision", "Answer", "ListedAnswer"} {
		replace(all[name], "kind", ref("Kind"))
	}
	for _, name := range []string{"Answer", "ListedAnswer", "Answers", "Revocation", "Allow", "Pattern", "PatternValue"} {
		all[name].AdditionalProperties = false
	}
	// Arguments are allowed only with an edit. Who approves or edits says what it has reviewed.
	kind := func(is ledger.DecisionKind) map[string]any {
		return map[string]any{"properties": map[string]any{"kind": map[string]any{"const": is}}}
	}
	for _, name := range []string{"Answer", "ListedAnswer"} {
		all[name].Extensions = map[string]any{
			"if":    kind(ledger.Edit),
			"then":  map[string]any{"required": []string{"arguments", "digest"}},
			"else":  map[string]any{"properties": map[string]any{"arguments": map[string]any{"not": map[string]any{}}}},
			"allOf": []any{map[string]any{"if": kind(ledger.Approve), "then": map[string]any{"required": []string{"digest"}}}},
		}
	}
	pattern, allow := all["Pattern"], all["Allow"]
	pattern.Description = "The matching arguments: exactly the same, the same values in some members, or any."
	replace(pattern, "kind", words(ledger.ExactArguments, ledger.SameValues, ledger.AnyArguments))
	maxValues, none := maxLeaves, 0.0
	pattern.Properties["values"].MaxItems = &maxValues
	allow.Properties["max_uses"].Minimum = &none
	replace(all["Decision"], "channel", words("web", "api", "slack", ledger.ChannelToken, ledger.ChannelStanding, ledger.ChannelCaller))
	all["Outcome"].Description = "The outcome of one decision: the approval after it, or the reason for a refusal."
	all["ToolChange"].Description = "A comparison of the tool's definition with the one with which a person last approved a call of the tool."
	var err error
	if a.document.RawMessage, err = json.Marshal(a.huma.OpenAPI()); err != nil {
		return fmt.Errorf("web: encoding the OpenAPI document: %w", err)
	}
	return a.shapes.compile(all)
}

// Descriptions of named values.
const (
	stateText = "pending: it waits for decisions. approved: it has the required approvals, and the call has not begun to run. denied: a person denied it. expired: it did not get the required approvals, or did not run, in time. " +
		"revoked: it was withdrawn before the call ran. canceled: the caller canceled the call. running: the call runs. succeeded: the tool returned a result, which can be an error of the tool. " +
		"failed: the call did not run, or certainly failed. unknown: the call was sent, and its outcome cannot be determined; it becomes succeeded or failed if the outcome arrives later. denied, expired, revoked, canceled, succeeded and failed are final."
	kindText = "approve: approve the arguments that were shown. deny: refuse the call; one denial is enough, also after an approval if the call has not begun to run. edit: replace the arguments, and approve the new ones. " +
		"extend: move the deadline by the time for which the rule holds such calls. revoke: withdraw the request or its approval before the call runs."
)

// replace replaces the schema of a member and keeps its description.
func replace(of *huma.Schema, member string, s *huma.Schema) {
	s.Description = of.Properties[member].Description
	of.Properties[member] = s
}

// plain restricts the schema of a Go type to the values that are sent: lists are absent but never
// null, and integers have no width.
func plain(s *huma.Schema) {
	if s == nil {
		return
	}
	s.Nullable = false
	if s.Type == huma.TypeInteger {
		s.Format = ""
	}
	if open, is := s.AdditionalProperties.(bool); is && open {
		s.AdditionalProperties = nil
	}
	plain(s.Items)
	for _, member := range s.Properties {
		plain(member)
	}
}

// shapes holds the request bodies of the API as described in its document, so that validation and
// document cannot differ.
type shapes map[string]*validate.Schema

// compile compiles the schemas whose names shapes contains.
func (s shapes) compile(all map[string]*huma.Schema) error {
	for name := range s {
		raw, err := json.Marshal(map[string]any{"$ref": schemaPrefix + name, "components": map[string]any{"schemas": all}})
		if err == nil {
			s[name], err = validate.Compile(raw)
		}
		if err != nil {
			return fmt.Errorf("web: the schema %s: %w", name, err)
		}
	}
	return nil
}

// read decodes a body, or returns an error that lists every violation of the schema.
func (s shapes) read(name string, body []byte, to any) error {
	if err := validate.Value(body, len(body)+1, 0); err != nil {
		return err
	}
	faults := s[name].Validate(body)
	if len(faults) == 0 {
		// A schema does not distinguish a time from another string, and accepts 1.0 as an integer.
		if json.Unmarshal(body, to) != nil {
			return schema.Errorf(schema.KindInvalidRequest, "The member allow must be an object with until (an RFC 3339 time), pattern and max_uses (digits), as in GET /openapi.json; nothing was done.")
		}
		return nil
	}
	at := cmp.Or(faults[0].Pointer, "the whole body")
	e := schema.Errorf(schema.KindInvalidRequest, "The body does not match the schema in GET /openapi.json; nothing was done. At %s: %s", at, faults[0].Message)
	e.Faults = faults
	return e
}
