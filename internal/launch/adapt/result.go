package adapt

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/callyard/callyard/internal/kit/bom"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/kit/urls"
)

// maxDepth limits the nesting of JSON that becomes structured content. Deeper JSON stays text.
const maxDepth = 256

// told are the response headers that callers see.
var told = [...]string{"Content-Location", "Etag", "Last-Modified", "Link", "Location", "Retry-After"}

// Do sends the request once and returns its response with at most limit bytes of body (0 means 64
// MiB), or [*TooLarge]. Errors do not contain the address, which may hold a secret.
func Do(client *http.Client, req *http.Request, limit int) (*http.Response, []byte, error) {
	if limit <= 0 {
		limit = 64 << 20
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, urls.WithoutURL(err)
	}
	defer resp.Body.Close()
	if resp.ContentLength > int64(limit) && req.Method != http.MethodHead {
		return nil, nil, &TooLarge{limit}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	switch {
	case err != nil:
		return nil, nil, err
	case len(body) > limit:
		return nil, nil, &TooLarge{limit}
	}
	return resp, body, nil
}

// Result turns a response into a CallToolResult. A 2xx response is a success, any other an error
// that names its status. JSON becomes text, byte for byte if it is UTF-8, and structured content: an
// object as it is, and any other value inside {"result": …} if wrap is set because the tool's schema promises
// that.
func Result(tool string, resp *http.Response, body []byte, wrap bool) []byte {
	failed := resp.StatusCode/100 != 2
	kind, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	body = decoded(kind, params["charset"], body)
	b := []byte(`{"content":[`)
	if failed || len(body) == 0 {
		b = appendText(b, "HTTP "+strconv.Itoa(resp.StatusCode)+" "+http.StatusText(resp.StatusCode))
		if len(body) > 0 {
			b = append(b, ',')
		}
	}
	var structured []byte
	if len(body) > 0 {
		b = appendContent(b, tool, kind, params["charset"], body)
		structured = structure(kind, body, wrap && !failed)
	}
	b = append(b, ']')
	if structured != nil {
		b = append(b, `,"structuredContent":`...)
		b = append(b, structured...)
	}
	if failed {
		b = append(b, `,"isError":true`...)
	}
	b = append(b, `,"_meta":{"callyard/http":{"status":`...)
	b = strconv.AppendInt(b, int64(resp.StatusCode), 10)
	for _, name := range told {
		if value := resp.Header.Get(name); value != "" {
			b = append(b, `,"`+strings.ToLower(name)+`":`...)
			b = appendString(b, value)
		}
	}
	return append(b, `}}}`...)
}

// decoded returns text that is not UTF-8 in UTF-8, by the charset that the response names. A result
// has no other encoding, so the caller would get bytes and would not know their charset.
func decoded(kind, name string, body []byte) []byte {
	if utf8.Valid(body) || !isText(kind) {
		return body
	}
	e, _ := charset.Lookup(name)
	if e == nil {
		return body
	}
	text, err := e.NewDecoder().Bytes(body)
	if err != nil {
		return body
	}
	return bom.Trim(text)
}

// Failure returns a CallToolResult with a sentence about why nothing, or nothing more, was done.
func Failure(sentence string) []byte {
	return append(appendText([]byte(`{"content":[`), sentence), `],"isError":true}`...)
}

func appendText(b []byte, text string) []byte {
	b = append(b, `{"type":"text","text":`...)
	b = appendString(b, text)
	return append(b, '}')
}

func appendContent(b []byte, tool, kind, encoding string, body []byte) []byte {
	major, _, _ := strings.Cut(kind, "/")
	switch {
	case major == "image" && kind != "image/svg+xml" || major == "audio":
		b = append(b, `{"type":"`+major+`","data":"`...)
		b = base64.StdEncoding.AppendEncode(b, body)
		b = append(b, `","mimeType":`...)
		b = appendString(b, kind)
		return append(b, '}')
	case utf8.Valid(body) && (isText(kind) || kind == "" || strings.EqualFold(encoding, "utf-8")):
		return appendText(b, string(body))
	}
	if kind == "" {
		kind = "application/octet-stream"
	}
	b = append(b, `{"type":"resource","resource":{"uri":`...)
	b = appendString(b, "answer:"+tool)
	b = append(b, `,"mimeType":`...)
	b = appendString(b, kind)
	b = append(b, `,"blob":"`...)
	b = base64.StdEncoding.AppendEncode(b, body)
	return append(b, `"}}`...)
}

func isText(kind string) bool {
	switch kind {
	case "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/javascript", "application/x-ndjson",
		"application/jsonl", "application/x-www-form-urlencoded", "application/graphql", "application/sql", "application/toml":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+yaml")
}

// IsJSON reports whether a media type is JSON.
func IsJSON(kind string) bool { return kind == "application/json" || strings.HasSuffix(kind, "+json") }

// structure returns the structured content of a body, or nil if there is none.
func structure(kind string, body []byte, wrap bool) []byte {
	text := bytes.TrimSpace(bom.Trim(body)) // some services of .NET begin with a byte order mark
	if !IsJSON(kind) || len(text) == 0 || !utf8.Valid(text) || rawjson.ExceedsDepth(text, maxDepth) || !json.Valid(text) {
		return nil
	}
	switch {
	case wrap:
		return append(append([]byte(`{"result":`), text...), '}')
	case text[0] == '{':
		return text
	}
	return nil
}
