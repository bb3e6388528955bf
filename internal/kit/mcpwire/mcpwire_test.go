package mcpwire_test

import (
	"reflect"
	"testing"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/internal/kit/rawjson"
)

func TestConstantsMatchTheMCPSpecification(t *testing.T) {
	for want, got := range map[string]string{
		"2026-07-28": mcpwire.Modern, "2025-11-25": mcpwire.Legacy()[0],
		"io.modelcontextprotocol/protocolVersion": mcpwire.MetaProtocolVersion, "io.modelcontextprotocol/clientCapabilities": mcpwire.MetaClientCapabilities,
		"io.modelcontextprotocol/clientInfo": mcpwire.MetaClientInfo, "io.modelcontextprotocol/serverInfo": mcpwire.MetaServerInfo,
		"io.modelcontextprotocol/logLevel": mcpwire.MetaLogLevel, "io.modelcontextprotocol/subscriptionId": mcpwire.MetaSubscriptionID,
		"io.modelcontextprotocol/tasks": mcpwire.ExtensionTasks,
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	codes := []int64{
		mcpwire.CodeParse, mcpwire.CodeInvalidRequest, mcpwire.CodeMethodNotFound, mcpwire.CodeInvalidParams, mcpwire.CodeInternal,
		mcpwire.CodeNoSession, mcpwire.CodeNoResource, mcpwire.CodeHeaderMismatch, mcpwire.CodeMissingCapability, mcpwire.CodeUnsupportedVersion, mcpwire.CodeURLElicitation,
	}
	if want := []int64{-32700, -32600, -32601, -32602, -32603, -32001, -32002, -32020, -32021, -32022, -32042}; !reflect.DeepEqual(codes, want) {
		t.Errorf("%v, want %v", codes, want)
	}
	for revision, modern := range map[string]bool{"2026-07-28": true, "2027-01-01": true, "2025-11-25": false, "": false} {
		if mcpwire.IsModern(revision) != modern {
			t.Errorf("%q", revision)
		}
	}
}

// The scanner has the keys of every call built in.
func TestCommonMetaKeysAreScannedWithoutAllocation(t *testing.T) {
	meta := []byte(`{"` + mcpwire.MetaProtocolVersion + `":1,"` + mcpwire.MetaClientCapabilities + `":2,"` + mcpwire.MetaClientInfo + `":3}`)
	if n := testing.AllocsPerRun(100, func() { rawjson.Members(meta, func(string, []byte) {}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestHeadersRepeatAnnotatedArguments(t *testing.T) {
	input := []byte(`{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"where":{"type":"object","properties":{"depth":{"type":"integer","x-mcp-header":"depth"}}},
		"bad":{"type":"string","x-mcp-header":"two words"},"empty":{"x-mcp-header":""},"number":{"x-mcp-header":1},"none":{"type":"string"}}}`)
	got := mcpwire.ParamHeaders(input)
	want := []mcpwire.ParamHeader{{Path: []string{"region"}, Name: "Mcp-Param-Region"}, {Path: []string{"where", "depth"}, Name: "Mcp-Param-Depth"}}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%v", got)
	}
	for arguments, value := range map[string]string{`{"where":{"depth":1e3}}`: "1e3", `{"where":1}`: "", `{}`: "", ``: "", `[]`: ""} {
		if got := got[1].Argument([]byte(arguments)); string(got) != value {
			t.Errorf("%s: %s", arguments, got)
		}
	}
	if mcpwire.ParamHeaders([]byte(`{"type":"object","properties":{"a":{}}}`)) != nil {
		t.Error("a schema without annotations has headers")
	}
}

func TestHeaderTextOfJSONScalars(t *testing.T) {
	for value, want := range map[string]string{`"a b"`: "a b", `true`: "true", `12`: "12", `1e3`: "1000", `5.0`: "5", `-0`: "0", `1.5`: "1.5", `1e300`: "1e300"} {
		if got, ok := mcpwire.HeaderText([]byte(value)); !ok || got != want {
			t.Errorf("%s: %q %v", value, got, ok)
		}
	}
	for _, value := range []string{``, `null`, `{}`, `[1]`} {
		if got, ok := mcpwire.HeaderText([]byte(value)); ok {
			t.Errorf("%s: %q", value, got)
		}
	}
}

func TestHeaderEncodingRoundTrips(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "": "", "wärme 温度": "=?base64?d8Okcm1lIOa4qeW6pg==?=", " edge": "=?base64?IGVkZ2U=?=", "a\nb": "=?base64?YQpi?=",
		"=?base64?eA==?=": "=?base64?PT9iYXNlNjQ/ZUE9PT89?=",
	} {
		got := mcpwire.EncodeHeader(text)
		if back, ok := mcpwire.DecodeHeader(got); got != want || back != text || !ok {
			t.Errorf("%q: %q, and back %q %v", text, got, back, ok)
		}
	}
	if _, ok := mcpwire.DecodeHeader("=?base64?*?="); ok {
		t.Error("what is no base64 was decoded")
	}
}

func TestAppendErrorAddsAnErrorMember(t *testing.T) {
	if got := string(mcpwire.AppendError([]byte(`{`), mcpwire.CodeInternal, `a "b"`)); got != `{"error":{"code":-32603,"message":"a \"b\""}` {
		t.Error(got)
	}
}
