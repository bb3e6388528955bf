package format

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// Answer is the outcome of one tool call.
type Answer struct {
	Call Call
	// Result is the CallToolResult of the tool. It is nil if there is none.
	Result []byte
	// Text is a sentence for the model in place of a result. Failed reports that the call
	// failed.
	Text   string
	Failed bool
}

// part is one content block of a result.
type part struct {
	kind string // "text", "image", "audio" or "file"
	text string
	mime string
	data string // base64
	name string
}

// content is a parsed result.
type content struct {
	parts      []part
	structured *value // nil if there is none, or if a text block has the same content
	failed     bool
	none       bool // the tool returned no result
}

const (
	nothingSaid  = "The tool returned nothing."
	failedSilent = "The tool reported an error without details."
)

// contentOf parses an answer. A content block of unknown type becomes its JSON text.
func contentOf(a Answer) content {
	if a.Result == nil {
		return content{parts: []part{{kind: "text", text: a.Text}}, failed: a.Failed, none: true}
	}
	v, err := read(a.Result)
	if err != nil || !v.isObject() {
		return content{parts: []part{{kind: "text", text: strings.ToValidUTF8(string(a.Result), "\uFFFD")}}}
	}
	c := content{failed: v.get("isError").isTrue()}
	if blocks := v.get("content"); blocks.isList() {
		for _, b := range blocks.items {
			c.parts = append(c.parts, partOf(b))
		}
	}
	if s := v.get("structuredContent"); s != nil && s.kind != 'n' {
		c.structured = s
		for _, p := range c.parts {
			if p.kind != "text" || c.structured == nil {
				continue
			}
			if said, err := read([]byte(p.text)); err == nil && equalValues(said, s) {
				c.structured = nil
			}
		}
	}
	c.parts = slices.DeleteFunc(c.parts, func(p part) bool { return p.kind == "text" && p.text == "" })
	return c
}

func partOf(b *value) part {
	mime, data := b.get("mimeType").text(), b.get("data").text()
	switch b.get("type").text() {
	case "text":
		if t := b.get("text"); t.isString() {
			return part{kind: "text", text: t.text()}
		}
	case "image", "audio":
		if data != "" {
			return part{kind: b.get("type").text(), mime: mime, data: data}
		}
	case "resource":
		if r := b.get("resource"); r.isObject() {
			return resourceOf(r)
		}
	case "resource_link":
		said := []string{"Resource", b.get("uri").text()}
		for _, name := range []string{"name", "mimeType", "description"} {
			if s := b.get(name).text(); s != "" {
				said = append(said, "("+s+")")
			}
		}
		return part{kind: "text", text: strings.Join(said, " ")}
	}
	return part{kind: "text", text: string(b.source())}
}

func resourceOf(r *value) part {
	uri, mime := r.get("uri").text(), r.get("mimeType").text()
	if t := r.get("text"); t.isString() {
		return part{kind: "text", text: "Resource " + uri + ":\n" + t.text()}
	}
	p := part{kind: "file", mime: mime, data: r.get("blob").text(), name: uri[strings.LastIndexByte(uri, '/')+1:]}
	switch {
	case p.data == "":
		return part{kind: "text", text: string(r.source())}
	case strings.HasPrefix(mime, "image/"):
		p.kind = "image"
	case strings.HasPrefix(mime, "audio/"):
		p.kind = "audio"
	}
	return p
}

// words returns the texts of the content, followed by the structured content.
func (c *content) words() []string {
	var all []string
	for _, p := range c.parts {
		if p.kind == "text" {
			all = append(all, p.text)
		}
	}
	if c.structured != nil {
		all = append(all, string(c.structured.source()))
	}
	return all
}

// said returns the content as one text, for providers that have no error flag.
func (c *content) said(more ...string) string {
	text := strings.Join(append(c.words(), more...), "\n")
	switch {
	case text == "":
		return c.emptyText()
	case c.failed && c.none:
		return "This call failed: " + text
	case c.failed:
		return "The tool reported an error: " + text
	}
	return text
}

// emptyText returns the text for a result without content.
func (c *content) emptyText() string {
	if c.failed {
		return failedSilent
	}
	return nothingSaid
}

// placeholder returns a placeholder for data that cannot be included.
func (p part) placeholder() string {
	return "[" + strings.TrimSpace(p.mime+" "+p.kind) + " of " + strconv.Itoa(len(p.data)/4*3) + " bytes, which cannot be included here]"
}

func (p part) url() string { return "data:" + p.mime + ";base64," + p.data }

// Messages returns the provider's messages that answer the tool calls, in order, as a JSON list to
// append after the message with the calls. notes lists, for each answer, the parts that could not
// be included; the messages have placeholders for them.
//
// OpenAI's tool messages are text only, so images, audio and files follow in a user message. For
// MCP the messages are the results, each in a JSON-RPC response if the call came in a request.
func (f Format) Messages(answers []Answer) (messages json.RawMessage, notes [][]string) {
	notes = make([][]string, len(answers))
	out, inner, media := list(), list(), list()
	for i := range answers {
		c := contentOf(answers[i])
		note := func(p part) string {
			notes[i] = append(notes[i], p.placeholder())
			return p.placeholder()
		}
		switch f {
		case OpenAI:
			out.items = append(out.items, openAIMessage(&answers[i], &c, media, note))
		case Responses:
			out.items = append(out.items, responsesItem(&answers[i], &c, note))
		case Anthropic:
			inner.items = append(inner.items, anthropicBlock(&answers[i], &c, note))
		case Gemini:
			inner.items = append(inner.items, geminiPart(&answers[i], &c, media, note))
		default:
			out.items = append(out.items, mcpResult(&answers[i]))
		}
	}
	switch {
	case len(answers) == 0:
	case f == OpenAI && len(media.items) > 0:
		out.items = append(out.items, userMessage("content", media))
	case f == Anthropic:
		out.items = append(out.items, userMessage("content", inner))
	case f == Gemini:
		inner.items = append(inner.items, media.items...)
		out.items = append(out.items, userMessage("parts", inner))
	}
	return out.encode(nil), notes
}

func userMessage(name string, content *value) *value {
	return fields("role", "user").set(name, content)
}

// imageTypes lists the image types that OpenAI and Anthropic accept.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

func picture(p part) bool { return p.kind == "image" && slices.Contains(imageTypes, p.mime) }

const pdf = "application/pdf"

func (p part) fileName() string {
	if p.name != "" {
		return p.name
	}
	return "file.pdf"
}

func openAIMessage(a *Answer, c *content, media *value, note func(part) string) *value {
	var more []string
	for _, p := range c.parts {
		var m *value
		switch {
		case p.kind == "text":
			continue
		case picture(p):
			m = typed("image_url").set("image_url", fields("url", p.url()))
		case p.kind == "audio" && audioFormat(p.mime) != "":
			m = typed("input_audio").set("input_audio", fields("data", p.data, "format", audioFormat(p.mime)))
		case p.mime == pdf:
			m = typed("file").set("file", fields("filename", p.fileName(), "file_data", p.url()))
		default:
			more = append(more, note(p))
			continue
		}
		label := p.kind + " " + strconv.Itoa(len(media.items)/2+1)
		media.items = append(media.items, typed("text", "text", "The "+label+" of the result of "+a.Call.Name+":"), m)
		more = append(more, "[The "+label+" is in the next message of the user.]")
	}
	if a.Call.legacy {
		return fields("role", "function", "name", a.Call.Name, "content", c.said(more...))
	}
	return fields("role", "tool", "tool_call_id", a.Call.ID, "content", c.said(more...))
}

func audioFormat(mime string) string {
	switch mime {
	case "audio/wav", "audio/x-wav", "audio/wave":
		return "wav"
	case "audio/mpeg", "audio/mp3":
		return "mp3"
	}
	return ""
}

func responsesItem(a *Answer, c *content, note func(part) string) *value {
	item := typed("function_call_output", "call_id", a.Call.ID)
	rich := list()
	var more []string
	for _, p := range c.parts {
		switch {
		case p.kind == "text":
		case picture(p):
			rich.items = append(rich.items, typed("input_image", "image_url", p.url()))
		case p.mime == pdf:
			rich.items = append(rich.items, typed("input_file", "filename", p.fileName(), "file_data", p.url()))
		default:
			more = append(more, note(p))
		}
	}
	if len(rich.items) == 0 {
		return item.set("output", str(c.said(more...)))
	}
	if len(c.words())+len(more) > 0 || c.failed {
		rich.items = append([]*value{typed("input_text", "text", c.said(more...))}, rich.items...)
	}
	return item.set("output", rich)
}

func anthropicBlock(a *Answer, c *content, note func(part) string) *value {
	block := typed("tool_result", "tool_use_id", a.Call.ID)
	blocks := list()
	source := func(p part) *value {
		return typed("base64", "media_type", p.mime, "data", p.data)
	}
	for _, p := range c.parts {
		switch {
		case p.kind == "text":
			blocks.items = append(blocks.items, typed("text", "text", p.text))
		case picture(p):
			blocks.items = append(blocks.items, typed("image").set("source", source(p)))
		case p.mime == pdf:
			blocks.items = append(blocks.items, typed("document").set("source", source(p)))
		default:
			blocks.items = append(blocks.items, typed("text", "text", note(p)))
		}
	}
	if c.structured != nil {
		blocks.items = append(blocks.items, typed("text", "text", string(c.structured.source())))
	}
	if len(blocks.items) == 0 {
		blocks.items = append(blocks.items, typed("text", "text", c.emptyText()))
	}
	block.set("content", blocks)
	if c.failed {
		block.set("is_error", ok())
	}
	return block
}

// geminiMedia lists the media types that Gemini accepts.
var geminiMedia = []string{
	"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", pdf,
	"audio/wav", "audio/x-wav", "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac",
}

func geminiPart(a *Answer, c *content, media *value, note func(part) string) *value {
	response := object()
	texts := content{parts: c.parts}
	said := strings.Join(texts.words(), "\n")
	for _, p := range c.parts {
		if p.kind == "text" {
			continue
		}
		if !slices.Contains(geminiMedia, p.mime) {
			said = strings.TrimPrefix(said+"\n"+note(p), "\n")
			continue
		}
		media.items = append(media.items, object().set("inlineData", fields("mimeType", p.mime, "data", p.data)))
		said = strings.TrimPrefix(said+"\n[The "+strings.TrimSpace(p.mime+" "+p.kind)+" follows as part "+strconv.Itoa(len(media.items))+" behind the responses.]", "\n")
	}
	key := "output"
	if c.failed {
		key = "error"
	}
	switch {
	case said == "" && c.structured != nil && !c.failed:
		response.set(key, c.structured)
	case said == "" && c.structured == nil:
		response.set(key, str(c.emptyText()))
	default:
		response.set(key, str(said))
		if c.structured != nil {
			response.set("structuredContent", c.structured)
		}
	}
	return object().set("functionResponse", withID(a.Call.ID).set("name", str(a.Call.Name)).set("response", response))
}

// mcpResult returns the result unchanged, or makes a result from the text of an answer without one.
func mcpResult(a *Answer) *value {
	result, err := read(a.Result)
	if a.Result == nil || err != nil {
		result = object().set("content", list(typed("text", "text", contentOf(*a).parts[0].text)))
		if a.Failed {
			result.set("isError", ok())
		}
	}
	result = asWritten(result.source())
	if !a.Call.rpc || a.Call.ID == "" {
		return result
	}
	return fields("jsonrpc", "2.0").set("id", asWritten([]byte(a.Call.ID))).set("result", result)
}

// withID returns an object with an id, or an empty object if id is empty.
func withID(id string) *value {
	if id == "" {
		return object()
	}
	return fields("id", id)
}

// PlainMessages answers tool calls that [Extract] found in plain text: one user message, in the
// provider's format, with a <tool_response> for each call.
func (f Format) PlainMessages(answers []Answer) json.RawMessage {
	if len(answers) == 0 {
		return list().encode(nil)
	}
	var b strings.Builder
	for i := range answers {
		c := contentOf(answers[i])
		var more []string
		for _, p := range c.parts {
			if p.kind != "text" {
				more = append(more, p.placeholder())
			}
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("<tool_response>\n")
		b.Write(fields("name", answers[i].Call.Name, "content", c.said(more...)).encode(nil))
		b.WriteString("\n</tool_response>")
	}
	if f == Gemini {
		return list(userMessage("parts", list(fields("text", b.String())))).encode(nil)
	}
	return list(userMessage("content", str(b.String()))).encode(nil)
}

// ErrorText returns the text for the model about a call that failed without a result.
func ErrorText(e *schema.Error) string {
	var b strings.Builder
	b.WriteString(e.Detail)
	if e.Detail != "" && !strings.ContainsAny(e.Detail[len(e.Detail)-1:], ".!?") {
		b.WriteByte('.')
	}
	for i, f := range e.Faults {
		if i == 8 {
			b.WriteString(" And more.")
			break
		}
		b.WriteString("\n" + cmp.Or(f.Pointer, "the arguments") + ": " + f.Message)
	}
	if e.Retryable {
		b.WriteString(" You can send the call again.")
	}
	return b.String()
}
