/* SPDX-License-Identifier: Apache-2.0 */
/* How the report looks. Eight colours that stay apart for readers with any of the three common
 * forms of colour blindness, at least 3:1 against their background, in a light and a dark set; each
 * of the twelve lines has a dash pattern of its own besides. */
#include "ports/sim/lab/html_parts.h"

static const char colours[] =
    ":root{color-scheme:light dark;--bg:#f4f5f7;--card:#ffffff;--text:#1b1e24;--muted:#5b6270;"
    "--rule:#e3e6eb;--axis:#9aa1ad;--accent:#0f3d99;--c0:#0b3aa8;--c1:#cf7422;--c2:#2c9887;"
    "--c3:#6d155d;--c4:#555a63;--c5:#236d99;--c6:#81600e;--c7:#a066f0}\n"
    "@media (prefers-color-scheme:dark){:root{--bg:#101216;--card:#181b21;--text:#e8eaee;"
    "--muted:#a3aab6;--rule:#2b3039;--axis:#6b7381;--accent:#9dbcff;--c0:#5b89ff;--c1:#f77e35;"
    "--c2:#2bf0bb;--c3:#e0488a;--c4:#a9adb5;--c5:#4ab8fd;--c6:#f6d32b;--c7:#957fc4}}\n";

static const char series[] =
    ".s0{--k:var(--c0)}.s1{--k:var(--c1);--d:8 4}.s2{--k:var(--c2);--d:2 3}"
    ".s3{--k:var(--c3);--d:10 3 2 3}.s4{--k:var(--c4);--d:16 4}.s5{--k:var(--c5);--d:5 3 1 3 1 3}"
    ".s6{--k:var(--c6);--d:4 4}.s7{--k:var(--c7);--d:12 3 5 3}.s8{--k:var(--c0);--d:3 2 3 6}"
    ".s9{--k:var(--c1);--d:1 2}.s10{--k:var(--c2);--d:18 3 3 3 3 3}.s11{--k:var(--c3);--d:6 2}\n";

/* Pointing at a name dims the lines of all others. */
static const char pointing[] =
    "body:has(.k.s0:hover) g.s:not(.s0),body:has(.k.s1:hover) g.s:not(.s1),"
    "body:has(.k.s2:hover) g.s:not(.s2),body:has(.k.s3:hover) g.s:not(.s3),"
    "body:has(.k.s4:hover) g.s:not(.s4),body:has(.k.s5:hover) g.s:not(.s5),"
    "body:has(.k.s6:hover) g.s:not(.s6),body:has(.k.s7:hover) g.s:not(.s7),"
    "body:has(.k.s8:hover) g.s:not(.s8),body:has(.k.s9:hover) g.s:not(.s9),"
    "body:has(.k.s10:hover) g.s:not(.s10),body:has(.k.s11:hover) g.s:not(.s11){opacity:.1}\n"
    "g.s{transition:opacity .15s;pointer-events:none}\n";

static const char page[] =
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;padding:28px 24px 40px;max-width:1280px;background:var(--bg);"
    "color:var(--text);font:15px/1.45 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica "
    "Neue\",Arial,sans-serif;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}\n"
    "header{margin:0 0 22px}\n"
    ".over{margin:0;color:var(--muted);font-size:12px;font-weight:600;letter-spacing:.08em;"
    "text-transform:uppercase}\n"
    "h1{margin:2px 0 8px;font-size:30px;line-height:1.2;font-weight:680;letter-spacing:-.01em}\n"
    ".lead{margin:0 0 18px;font-size:19px;max-width:60em}.lead strong{color:var(--accent)}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(128px,1fr));gap:10px;"
    "margin:0}\n"
    ".tiles div{background:var(--card);border:1px solid var(--rule);border-radius:10px;"
    "padding:10px 14px}\n"
    ".tiles dt{color:var(--muted);font-size:12px}.tiles dd{margin:0;font-size:20px;"
    "font-weight:620}\n"
    "main{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:18px}\n"
    ".card{background:var(--card);border:1px solid var(--rule);border-radius:12px;"
    "padding:18px 20px 14px;min-width:0}.wide{grid-column:1/-1}\n"
    "h2{margin:0;font-size:17px;font-weight:650}h3{margin:12px 0 4px;font-size:13px;"
    "font-weight:620}\n"
    ".says{margin:2px 0 12px;color:var(--muted);font-size:13px}.none{color:var(--muted)}\n"
    "footer{margin:20px 2px 0;color:var(--muted);font-size:12.5px}footer p{margin:4px 0;"
    "max-width:70em}\n";

static const char plots[] =
    ".ysay{margin:0 0 6px;color:var(--muted);font-size:12px;display:flex;"
    "justify-content:space-between}\n"
    ".goalsay::before{content:\"\";display:inline-block;width:22px;margin-right:6px;"
    "vertical-align:middle;border-top:2px dotted var(--text)}\n"
    ".plot{display:grid;grid-template-columns:44px minmax(0,1fr) 152px;"
    "grid-template-rows:300px 40px}\n"
    ".y{position:relative}.y span{position:absolute;right:8px;transform:translateY(-50%);"
    "color:var(--muted);font-size:12px;white-space:nowrap}\n"
    ".area{grid-column:2;grid-row:1;width:100%;height:100%;overflow:visible}\n"
    ".x{grid-column:2;grid-row:2;position:relative;color:var(--muted);font-size:12px}"
    ".x .t{position:absolute;top:6px;transform:translateX(-50%);white-space:nowrap}"
    ".x .say{position:absolute;top:23px;right:0;white-space:nowrap}\n"
    ".names{grid-column:3;grid-row:1;position:relative}"
    ".ties{position:absolute;left:0;top:0;width:14px;height:100%;overflow:visible}"
    ".end{position:absolute;left:17px;right:0;height:17px;line-height:17px;margin-top:-8.5px;"
    "font-size:12.5px;white-space:nowrap;overflow:hidden;text-overflow:ellipsis;cursor:default}\n"
    ".sw{width:28px;height:10px;margin-right:6px;vertical-align:middle;flex:none}\n"
    ".legend{display:none;flex-wrap:wrap;gap:4px 14px;list-style:none;margin:6px 0 0;padding:0;"
    "font-size:13px}\n"
    "path{fill:none;vector-effect:non-scaling-stroke}\n"
    ".grid{stroke:var(--rule)}.axis{stroke:var(--axis)}.even{stroke:var(--axis);"
    "stroke-dasharray:4 4}.goal{stroke:var(--text);stroke-width:2;stroke-dasharray:1 3;"
    "opacity:.75}\n"
    ".ln{stroke:var(--k);stroke-width:2;stroke-dasharray:var(--d,none);stroke-linejoin:round}"
    ".dot{stroke:var(--k);stroke-width:8;stroke-linecap:round}.on{stroke:var(--k);opacity:.35}"
    ".to{stroke:var(--k);opacity:.6}.band{fill:var(--k);opacity:.13}\n"
    ".tip{fill:transparent}.tip:hover{fill:var(--text);fill-opacity:.07}\n";

static const char bars[] =
    "table{border-collapse:collapse;font-size:13px}th{font-weight:560;text-align:left}\n"
    ".bars{width:100%}.bars th,.bars td{padding:2px 0;white-space:nowrap}.bars tbody th{"
    "max-width:150px;overflow:hidden;text-overflow:ellipsis;padding-right:10px}\n"
    ".bars thead th{color:var(--muted);font-size:12px;font-weight:500}.bars .b{width:100%}\n"
    ".bars .n{padding-left:10px;text-align:right}.range{color:var(--muted);font-size:12px}\n"
    ".bar{display:block;width:100%;height:22px;overflow:visible;border-left:1px solid "
    "var(--axis)}\n"
    ".pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(300px,1fr));gap:0 40px}\n"
    ".fill{fill:var(--k)}.pale{fill:var(--k);opacity:.35}.whisker{stroke:var(--text);"
    "stroke-width:2.5}\n"
    ".smalls{display:grid;grid-template-columns:repeat(auto-fill,minmax(160px,1fr));"
    "gap:12px 18px}\n"
    ".small{min-width:0}.small h3{margin:0;white-space:nowrap;overflow:hidden;"
    "text-overflow:ellipsis}.small p{margin:0 0 4px;color:var(--muted);font-size:12px;"
    "white-space:nowrap;overflow:hidden;text-overflow:ellipsis}\n"
    ".hist{display:block;width:100%;height:64px;border-bottom:1px solid var(--axis)}\n"
    ".ends{display:flex;justify-content:space-between;color:var(--muted);font-size:11.5px}\n";

static const char tables[] =
    "details{margin-top:8px;font-size:13px}summary{color:var(--muted);cursor:pointer;"
    "width:fit-content}summary:hover{color:var(--text)}\n"
    ".scroll{overflow-x:auto;max-width:100%;overflow-wrap:normal}\n"
    ".scroll table{min-width:100%}.scroll th,.scroll td{padding:4px 7px;border-top:1px solid "
    "var(--rule);white-space:nowrap;vertical-align:top}.scroll thead th{border-top:0;"
    "color:var(--muted);font-weight:500;font-size:12px}.scroll tbody th{position:sticky;left:0;"
    "background:var(--card)}\n"
    ".n{text-align:right}.scroll small{display:block;color:var(--muted);font-size:11.5px}\n"
    ".sections{columns:2;column-gap:36px}.section{break-inside:avoid;padding-bottom:6px}"
    ".section h3{font-family:ui-monospace,Menlo,Consolas,monospace}"
    ".section table{width:100%;table-layout:fixed}.section th,.section td{padding:2px 8px 2px 0;"
    "border-top:1px solid var(--rule);vertical-align:top}.section th{width:38%}"
    ".origin{color:var(--muted);width:27%}\n";

static const char narrow[] =
    "@media (max-width:1000px){main{grid-template-columns:minmax(0,1fr)}}\n"
    "@media (max-width:620px){body{padding:18px 12px}h1{font-size:23px}.lead{font-size:16.5px}"
    ".card{padding:14px 14px 12px}.plot{grid-template-columns:38px minmax(0,1fr);"
    "grid-template-rows:230px 40px}.names,.x .odd,.range{display:none}.legend{display:flex}"
    ".sections{columns:1}.bars tbody th{max-width:110px}.area{max-width:calc(100% - 8px)}"
    ".tiles{grid-template-columns:repeat(3,minmax(0,1fr))}.tiles dd{font-size:16px}}\n"
    "@media print{body{background:#fff}.card{break-inside:avoid}}\n";

const char *const html_style[] = {colours, series, pointing, page, plots,
                                  bars,    tables, narrow,   NULL};
