package main

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// A converter is what the peers do not read alike.
type converter struct {
	// isExact refuses the text of a double that is rounded, as 0.1 is.
	isExact bool
	address func(text string) (any, error)
}

// bind makes the values of a context what the types of their parameters ask for. What the condition does not
// declare is left out.
func bind(q question, peer converter) (map[string]any, error) {
	bound := map[string]any{}
	for name, kind := range q.Parameters {
		json, ok := q.Context[name]
		if !ok {
			continue
		}
		value, err := convert(kind, json, peer)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		bound[name] = value
	}
	return bound, nil
}

// inner is what a type like `list<int>` holds; ok is false for any other type.
func inner(kind, outer string) (element string, ok bool) {
	rest, ok := strings.CutPrefix(kind, outer+"<")
	return strings.TrimSuffix(rest, ">"), ok
}

func convert(kind string, json any, peer converter) (any, error) {
	if element, ok := inner(kind, "list"); ok {
		items, ok := json.([]any)
		if !ok {
			return nil, fmt.Errorf("%T is no list", json)
		}
		list := make([]any, len(items))
		for i, item := range items {
			value, err := convert(element, item, peer)
			if err != nil {
				return nil, err
			}
			list[i] = value
		}
		return list, nil
	}
	if element, ok := inner(kind, "map"); ok {
		members, ok := json.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%T is no map", json)
		}
		made := make(map[string]any, len(members))
		for key, member := range members {
			value, err := convert(element, member, peer)
			if err != nil {
				return nil, err
			}
			made[key] = value
		}
		return made, nil
	}
	text, isText := json.(string)
	switch kind {
	case "any":
		return json, nil
	case "bool":
		if value, ok := json.(bool); ok {
			return value, nil
		}
	case "int", "uint", "double":
		return peer.number(kind, json)
	case "string":
		if isText {
			return text, nil
		}
	case "bytes":
		if isText {
			return base64.StdEncoding.DecodeString(text)
		}
	case "duration":
		if isText {
			return time.ParseDuration(text)
		}
	case "timestamp":
		if isText {
			return time.Parse(time.RFC3339, text)
		}
	case "ipaddress":
		if isText {
			return peer.address(text)
		}
	}
	return nil, fmt.Errorf("%T is no %s", json, kind)
}

// number reads a JSON number or its text, which both peers do by way of a big.Float of 64 bits.
func (peer converter) number(kind string, json any) (any, error) {
	var exact *big.Float
	switch value := json.(type) {
	case float64:
		if kind == "double" {
			return value, nil
		}
		exact = big.NewFloat(value)
	case string:
		read, _, err := big.ParseFloat(value, 10, 64, 0)
		if err != nil {
			return nil, err
		}
		exact = read
	default:
		return nil, fmt.Errorf("%T is no %s", json, kind)
	}
	if kind == "double" {
		value, accuracy := exact.Float64()
		if peer.isExact && accuracy != big.Exact {
			return nil, fmt.Errorf("%s is no double", exact)
		}
		return value, nil
	}
	if !exact.IsInt() {
		return nil, fmt.Errorf("%s is not whole", exact)
	}
	whole, _ := exact.Int64()
	if kind == "int" {
		return whole, nil
	}
	if whole < 0 {
		return nil, fmt.Errorf("%d is below zero", whole)
	}
	return uint64(whole), nil
}
