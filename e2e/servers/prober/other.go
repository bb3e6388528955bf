//go:build !linux

package main

func main() {} // a sandbox is Linux
