// Package modeltest is a server for tests that speaks as the APIs of language models do:
// OpenAI chat completions and Responses, Anthropic messages and Gemini, streamed or not.
//
// A [Script] says what the model answers to each request. The server is strict: it refuses
// with 400 what the vendors refuse, such as a call without its result in the place where it
// belongs, a signature that is missing, or two tools of one name. What it refused is in
// [Server.Refused].
//
// Sources of the rules: the API references of the vendors, as of November 2026.
package modeltest
