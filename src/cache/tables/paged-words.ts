import type { PageAllocator } from './page-allocator.ts';

/**
 * An address space of words on pages of one size. Only the first page is ever moved: it starts small
 * and doubles up to the page size, so that small tenants stay small and growth copies at most one page.
 * Hot code reads `pages` directly: word `address` is at `pages[address >>> shift][address & mask]`.
 */
export class PagedWords {
  readonly pages: Uint32Array[] = [];
  readonly pageWords: number;
  readonly #allocator: PageAllocator;

  /** `pageWords` is `firstWords` times a power of two. */
  constructor(allocator: PageAllocator, pageWords: number, firstWords: number) {
    this.#allocator = allocator;
    this.pageWords = pageWords;
    this.pages.push(allocator.words(firstWords));
  }

  /** Words of all pages together. */
  get capacity(): number {
    const first = this.pages[0] as Uint32Array;
    return first.length + (this.pages.length - 1) * this.pageWords;
  }

  get bytes(): number {
    return this.capacity * 4;
  }

  /** Releases all pages but the first, which keeps its size and its contents. */
  clear(): void {
    for (const page of this.pages.splice(1)) this.#allocator.release(page);
  }

  /** Doubles the first page, or adds a page once that one is full-sized. O(page). */
  grow(): void {
    const first = this.pages[0] as Uint32Array;
    if (first.length === this.pageWords) {
      this.pages.push(this.#allocator.words(this.pageWords));
      return;
    }
    const larger = this.#allocator.words(first.length * 2);
    larger.set(first);
    this.pages[0] = larger;
    this.#allocator.release(first);
  }
}
