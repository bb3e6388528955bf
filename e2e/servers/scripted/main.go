// Command scripted is a scripted MCP server on stdio, for tests that
// need a server as a separate program: in a container image, or started by a
// worker process. The first argument names the mode, one of the constants of
// package mcptest.
package main

import "github.com/callyard/callyard/internal/mcptest"

func main() { mcptest.Main() }
