/**
 * Makes the children of `target` those of `markup` with as few changes as it takes, so that focus,
 * selection, scroll positions and what is open stay. Elements with `data-key` are found again by it;
 * what has `data-keep` is left as it is once it is there.
 */
export function morph(target: Element, markup: string): void {
  const template = document.createElement('template');
  template.innerHTML = markup;
  morphChildren(target, template.content);
}

function morphChildren(target: ParentNode & Node, wanted: ParentNode & Node): void {
  const keyed = new Map<string, Element>();
  for (const child of target.children) {
    const key = keyOf(child);
    if (key !== '') keyed.set(key, child);
  }
  let cursor: ChildNode | null = target.firstChild;
  for (const node of Array.from(wanted.childNodes)) {
    const key = keyOf(node);
    const known = key === '' ? undefined : keyed.get(key);
    if (known !== undefined) {
      if (known === cursor) cursor = cursor.nextSibling;
      else target.insertBefore(known, cursor);
      morphNode(known, node);
    } else if (cursor !== null && key === '' && isAlike(cursor, node)) {
      morphNode(cursor, node);
      cursor = cursor.nextSibling;
    } else {
      target.insertBefore(node, cursor);
    }
  }
  while (cursor !== null) {
    const next: ChildNode | null = cursor.nextSibling;
    cursor.remove();
    cursor = next;
  }
}

function keyOf(node: Node): string {
  return node instanceof HTMLElement ? (node.dataset['key'] ?? '') : '';
}

function isAlike(one: Node, other: Node): boolean {
  return one.nodeName === other.nodeName && keyOf(one) === '';
}

function morphNode(target: Node, wanted: Node): void {
  if (!(target instanceof Element) || !(wanted instanceof Element)) {
    if (target.nodeValue !== wanted.nodeValue) target.nodeValue = wanted.nodeValue;
    return;
  }
  if (target.hasAttribute('data-keep')) return;
  for (const { name, value } of wanted.attributes) {
    if (isOfReader(target, name)) continue;
    if (target.getAttribute(name) !== value) target.setAttribute(name, value);
  }
  for (const name of target.getAttributeNames()) {
    if (!wanted.hasAttribute(name) && !isOfReader(target, name)) target.removeAttribute(name);
  }
  morphChildren(target, wanted);
}

/** Whether a section is open is for the reader to say once it is there. */
function isOfReader(element: Element, attribute: string): boolean {
  return attribute === 'open' && element instanceof HTMLDetailsElement;
}
